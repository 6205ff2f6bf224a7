// Reads JSON that other programs wrote, and says in words what is wrong with it. The header compiles slowly, as
// core/base/json.h does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "core/base/json.h"

namespace trainctl {

// The deepest nesting of lists and objects that is read. Real files have fewer levels, and each level needs memory on
// the stack.
inline constexpr int max_json_levels = 100;

// Why a text is not JSON: a clause such as "the character 'x' is not expected here", and its place in the text. Lines
// and columns count from 1; 0 means that the place is unknown.
struct JsonFault {
  std::string problem;
  int line = 0, column = 0;
};

// The fault of a text that the JSON library refuses at a byte, which counts from 1.
JsonFault json_fault(std::string_view text, std::size_t byte);

// Parses a text. Returns a discarded value (Json::is_discarded()) and sets `fault` if the text is not JSON, is nested
// deeper than max_json_levels or has a number that is too large. The memory used is proportional to the length of the
// text.
Json parse_json(std::string_view text, JsonFault& fault);

// Parses a text like parse_json() above. Throws Error{data} if the text is not JSON. `location` names the text: a file,
// or a line of a file if the text is this line.
Json parse_json(std::string_view text, const SourceLocation& location,
                std::string_view remedy = "the file is probably damaged: download it or copy it again");

// Says in words what an exception of the JSON library reports, such as "the key 'units' is missing".
std::string json_problem(const Json::exception& error);

// The value's kind with its article: "a text", "a list".
std::string json_kind(const Json& value);

// Returns the value of a key as T. Throws Error{data} such as "'units' must be a whole number, but is a text" if the
// object lacks the key or if its value has another type.
template <class T>
T json_value(const Json& object, const char* key);
extern template bool json_value<bool>(const Json& object, const char* key);
extern template int json_value<int>(const Json& object, const char* key);
extern template std::int64_t json_value<std::int64_t>(const Json& object, const char* key);
extern template std::size_t json_value<std::size_t>(const Json& object, const char* key);
extern template double json_value<double>(const Json& object, const char* key);
extern template std::string json_value<std::string>(const Json& object, const char* key);

}  // namespace trainctl
