// Tests that strings are written as the JSON library writes them.
#include "core/base/json_append.h"

#include <random>

#include "core/base/json.h"
#include "test/catch.h"

namespace trainctl::test::json_append_test {

TEST_CASE("a string is appended as the JSON library writes it") {
  const unsigned seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 2000; ++i) {
    // Up to the last character of ASCII, only letters, or any bytes, most of which are not UTF-8.
    const int first = i % 3 == 1 ? 'a' : 0, last = i % 3 == 1 ? 'z' : i % 3 == 0 ? 0x7f : 0xff;
    std::string value(random() % 40, '\0');
    for (char& c : value) c = static_cast<char>(std::uniform_int_distribution<int>(first, last)(random));
    std::string text = "before";
    append_json_string(text, value);
    REQUIRE(text == "before" + json_text(Json(value)));
  }
  for (const char* value : {"", "\"", "\\\\", "conv1/kernel", "größe", "\xe2\x82\xac", "a\xff"}) {
    std::string text;
    append_json_string(text, value);
    CHECK(text == json_text(Json(value)));
  }
}

}  // namespace trainctl::test::json_append_test
