// Tests JSON from other programs: faults are described in words with their place, and nesting that would overflow the
// stack is refused.
#include "core/base/json_parse.h"

#include <functional>

#include "test/catch.h"

namespace trainctl::json_parse_test {
namespace {

std::string nested(std::size_t levels, char open, char close, const std::string& inside) {
  std::string text;
  for (std::size_t i = 0; i < levels; ++i) text += open == '{' ? "{\"a\":" : "[";
  return text + inside + std::string(levels, close);
}

std::string error_of(const std::function<void()>& read) {
  try {
    read();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::data);
    return error.what();
  } catch (const Json::exception& error) {
    return json_problem(error);
  }
  return "";
}

std::string fault_of(const std::string& text) {
  return error_of([&] { parse_json(text, SourceLocation{"f.json"}, "copy it"); });
}

}  // namespace

TEST_CASE("JSON is read up to a depth of 100 levels, and deeper JSON is refused") {
  CHECK(parse_json(R"({"a": [1, {"b": null}]})", SourceLocation{"f"}) == Json::parse(R"({"a": [1, {"b": null}]})"));
  CHECK_NOTHROW(parse_json(nested(90, '[', ']', "1"), SourceLocation{"f"}));
  for (const std::size_t levels : {200u, 5'000'000u}) {
    for (const bool list : {true, false}) {
      CHECK(fault_of(list ? nested(levels, '[', ']', "1") : nested(levels, '{', '}', "1")) ==
            "f.json: holds JSON that cannot be read: it has more than 100 levels; copy it");
    }
  }
}

TEST_CASE("a text that is not JSON is refused with line and column, without words of the JSON library") {
  CHECK(fault_of("[1,") == "f.json:1:4: is not JSON: the text ends too early; copy it");
  CHECK(fault_of("") == "f.json:1:1: is not JSON: the text ends too early; copy it");
  CHECK(fault_of("{\"a\": 1,\n  \"b\": x}") ==
        "f.json:2:8: is not JSON: the character 'x' is not expected here; copy it");
  CHECK(fault_of("{\"\xc3\xa4\": 1 2}") == "f.json:1:9: is not JSON: the character '2' is not expected here; copy it");
  CHECK(fault_of("[1e999]") == "f.json: holds JSON that cannot be read: it holds a number that is too large; copy it");
  CHECK(error_of([] {
          parse_json("{\"a\" 1}", SourceLocation{"f.jsonl", 7}, "");
        }) == "f.jsonl:7:6: is not JSON: the character '1' is not expected here");
  JsonFault fault;
  CHECK(parse_json("[\"\x01\"]", fault).is_discarded());
  CHECK(fault.problem == "the character 0x01 is not expected here");
  CHECK(fault.column == 3);
  CHECK(parse_json("[3]", fault) == Json({3}));
}

TEST_CASE("values of another type are described by the key and the kinds") {
  const Json json = Json::parse(R"({"units": "four", "rate": 0.5, "on": 1, "name": ["a"], "size": -1, "good": 7})");
  const auto problem = [&]<class T>(T, const char* key) { return error_of([&] { json_value<T>(json, key); }); };
  CHECK(problem(std::int64_t(), "units") == "'units' must be a whole number, but is a text");
  CHECK(problem(int(), "rate") == "'rate' must be a whole number, but is the number 0.5");
  CHECK(problem(bool(), "on") == "'on' must be true or false, but is 1");
  CHECK(problem(std::string(), "name") == "'name' must be a text, but is a list");
  CHECK(problem(std::size_t(), "size") == "'size' must be a whole number, but is -1");
  CHECK(problem(double(), "none") == "the key 'none' is missing");
  CHECK(error_of([] { json_value<int>(Json({1}), "a"); }) == "the object with the key 'a' is a list");
  CHECK(json_value<int>(json, "good") == 7);
  CHECK(json_value<double>(json, "rate") == 0.5);
}

TEST_CASE("exceptions of the JSON library are put into words") {
  const Json json = Json::parse(R"({"a": "x", "b": [1], "c": 2})");
  CHECK(error_of([&] { json.at("d"); }) == "the key 'd' is missing");
  CHECK(error_of([&] { json.at("a").get<int>(); }) == "a value is a text, but must be a number");
  CHECK(error_of([&] { json.at("c").get<std::string>(); }) == "a value is a number, but must be a text");
  CHECK(error_of([&] { json.at("c").get<bool>(); }) == "a value is a number, but must be true or false");
  CHECK(error_of([&] { json.at("a").at("x"); }) == "a value is a text, but must be an object or a list");
  CHECK(error_of([&] { json.at("b").at("x"); }) == "a value is a list, but must be an object or a list");
  CHECK(error_of([&] { json.at("c")[0]; }) == "a value is a number, but must be an object or a list");
  CHECK(error_of([&] { json.at("b").at(3); }) == "a list has too few items");
  CHECK(error_of([&] { [[maybe_unused]] const Json none = Json::parse("{"); }) == "it is not JSON");
}

}  // namespace trainctl::json_parse_test
