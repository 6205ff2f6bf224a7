// Tests JSON from other programs: nesting that would overflow the stack is refused.
#include "core/base/json_parse.h"

#include "test/catch.h"

namespace trainctl::json_parse_test {
namespace {

std::string nested(std::size_t levels, char open, char close, const std::string& inside) {
  std::string text;
  for (std::size_t i = 0; i < levels; ++i) text += open == '{' ? "{\"a\":" : "[";
  return text + inside + std::string(levels, close);
}

TEST_CASE("JSON is read up to a depth of 100 levels, and deeper JSON is refused with its location") {
  CHECK(parse_json(R"({"a": [1, {"b": null}]})", SourceLocation{"f"}) == Json::parse(R"({"a": [1, {"b": null}]})"));
  CHECK_NOTHROW(parse_json(nested(90, '[', ']', "1"), SourceLocation{"f"}));
  CHECK_THROWS_AS(parse_json("[1,", SourceLocation{"f"}), Json::exception);
  for (const std::size_t levels : {200u, 5'000'000u}) {
    for (const bool list : {true, false}) {
      try {
        parse_json(list ? nested(levels, '[', ']', "1") : nested(levels, '{', '}', "1"), SourceLocation{"f.json"});
        FAIL("it is read");
      } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::data);
        CHECK(std::string(error.what()).starts_with("f.json: holds JSON of more than 100 levels"));
      }
    }
  }
}

}  // namespace
}  // namespace trainctl::json_parse_test
