// Parses JSON and drops values that are nested too deep while parsing, so that they use no memory.
#include "core/base/json_parse.h"

#include <algorithm>
#include <type_traits>

#include "core/base/format.h"

namespace trainctl {
namespace {

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

std::string shown_character(char c) {
  const auto code = static_cast<unsigned char>(c);
  return code > 0x20 && code < 0x7f ? format("'{}'", c) : c == ' ' ? "' '" : format("0x{:02x}", code);
}

// The kind of a value, by the name that the JSON library gives to it.
std::string kind_with_article(std::string_view kind) {
  if (kind == "string") return "a text";
  if (kind == "array") return "a list";
  if (kind == "object") return "an object";
  if (kind == "number") return "a number";
  if (kind == "boolean") return "true or false";
  return std::string(kind);
}

std::string_view between(std::string_view text, std::string_view begin, std::string_view end) {
  const std::size_t first = text.find(begin);
  if (first == std::string_view::npos) return {};
  text.remove_prefix(first + begin.size());
  return text.substr(0, end.empty() ? text.size() : text.find(end));
}

template <class T>
const char* expected_kind() {
  if (std::is_same_v<T, bool>) return "true or false";
  if (std::is_integral_v<T>) return "a whole number";
  return std::is_floating_point_v<T> ? "a number" : "a text";
}

// Whether T can hold the value. The JSON library alone would cut 1.5 to 1, and take true for 1.
template <class T>
bool fits(const Json& value) {
  if (std::is_same_v<T, bool>) return value.is_boolean();
  if (std::is_unsigned_v<T>) return value.is_number_unsigned();
  if (std::is_integral_v<T>) return value.is_number_integer();
  return std::is_floating_point_v<T> ? value.is_number() : value.is_string();
}

}  // namespace

JsonFault json_fault(std::string_view text, std::size_t byte) {
  const std::size_t at = std::min(byte == 0 ? 0 : byte - 1, text.size());
  const std::string_view before = text.substr(0, at);
  JsonFault fault;
  fault.line = 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'));
  const std::string_view own = before.substr(before.rfind('\n') + 1);  // npos + 1 is 0
  fault.column = 1 + static_cast<int>(std::count_if(own.begin(), own.end(), begins_character));
  fault.problem = at == text.size() ? "the text ends too early"
                                    : format("the character {} is not expected here", shown_character(text[at]));
  return fault;
}

Json parse_json(std::string_view text, JsonFault& fault) {
  bool too_deep = false;
  const auto check_depth = [&too_deep](int depth, Json::parse_event_t, const Json&) {
    too_deep |= depth > max_json_levels;
    return !too_deep;
  };
  fault = {};
  try {
    Json json = Json::parse(text, check_depth);
    if (!too_deep) return json;
    fault.problem = format("it has more than {} levels", max_json_levels);
  } catch (const Json::parse_error& error) {
    fault = json_fault(text, error.byte);
  } catch (const Json::exception& error) {
    fault.problem = json_problem(error);
  }
  return Json(Json::value_t::discarded);
}

Json parse_json(std::string_view text, const SourceLocation& location, std::string_view remedy) {
  JsonFault fault;
  Json json = parse_json(text, fault);
  if (!json.is_discarded()) return json;
  SourceLocation place = location;
  if (!place.known()) place.line = fault.line;  // else the text is one line
  place.column = fault.column;
  const char* what = fault.line > 0 ? "is not JSON: " : "holds JSON that cannot be read: ";
  throw Error(ErrorKind::data, place, what + fault.problem, remedy);
}

std::string json_problem(const Json::exception& error) {
  constexpr int wrong_type = 302, wrong_reference = 303, no_at = 304, no_index = 305, no_value = 306, no_iterator = 307;
  constexpr int no_item = 401, no_key = 403, number_overflow = 406;
  const std::string_view text = error.what();
  switch (error.id) {
    case wrong_type:
      return format("a value is {}, but must be {}", kind_with_article(between(text, "but is ", "")),
                    kind_with_article(between(text, "type must be ", ",")));
    case wrong_reference:
      return format("a value is {}, but must be of another kind", kind_with_article(between(text, "type is ", "")));
    case no_at:
    case no_index:
    case no_value:
    case no_iterator:
      return format("a value is {}, but must be an object or a list",
                    kind_with_article(text.substr(std::min(text.rfind(' ') + 1, text.size()))));
    case no_item:
      return "a list has too few items";
    case no_key:
      return format("the key '{}' is missing", between(text, "key '", "' not found"));
    case number_overflow:
      return "it holds a number that is too large";
    default:
      break;
  }
  const bool is_syntax = error.id >= 100 && error.id < 200;
  return is_syntax ? "it is not JSON" : "a value is not of the expected kind";
}

std::string json_kind(const Json& value) {
  if (value.is_number_float()) return format("the number {}", json_text(value));
  if (value.is_number() || value.is_boolean()) return json_text(value);
  return kind_with_article(value.type_name());
}

template <class T>
T json_value(const Json& object, const char* key) {
  if (!object.is_object()) {
    throw Error(ErrorKind::data, format("the object with the key '{}' is {}", key, json_kind(object)));
  }
  const auto found = object.find(key);
  if (found == object.end()) throw Error(ErrorKind::data, format("the key '{}' is missing", key));
  if (fits<T>(*found)) return found->get<T>();
  throw Error(ErrorKind::data, format("'{}' must be {}, but is {}", key, expected_kind<T>(), json_kind(*found)));
}
template bool json_value<bool>(const Json& object, const char* key);
template int json_value<int>(const Json& object, const char* key);
template std::int64_t json_value<std::int64_t>(const Json& object, const char* key);
template std::size_t json_value<std::size_t>(const Json& object, const char* key);
template double json_value<double>(const Json& object, const char* key);
template std::string json_value<std::string>(const Json& object, const char* key);

}  // namespace trainctl
