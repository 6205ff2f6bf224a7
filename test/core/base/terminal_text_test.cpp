// Tests that text for people never controls the terminal that shows it.
#include "core/base/terminal_text.h"

#include "core/base/json.h"
#include "core/base/json_fwd.h"
#include "core/base/table.h"
#include "core/base/utf8.h"
#include "test/catch.h"

namespace trainctl::terminal_text_test {
namespace {

TEST_CASE("control characters, direction marks and bytes that are not UTF-8 are shown as escapes") {
  CHECK(terminal_text("plain, größer, 日本\n\tnext") == "plain, größer, 日本\n\tnext");
  CHECK(terminal_text("\x1b[31mred\a\b\r") == "\\u001b[31mred\\u0007\\u0008\\u000d");
  CHECK(terminal_text("\x7f|\xc2\x80|\xc2\x9b"
                      "31m|\xc2\xa0") == "\\u007f|\\u0080|\\u009b31m|\xc2\xa0");
  CHECK(terminal_text("\xe2\x80\xae|\xe2\x80\xa8|\xe2\x81\xa6|\xe2\x80\x93") == "\\u202e|\\u2028|\\u2066|\xe2\x80\x93");
  CHECK(terminal_text("caf\xe9|\x9b|\xc3") == "caf\\xe9|\\x9b|\\xc3");
  CHECK(terminal_text({"a\0b", 3}) == "a\\u0000b");
  CHECK(terminal_word("a\nb\tc") == "a\\u000ab\\u0009c");
}

TEST_CASE("no byte that controls a terminal is left in any text") {
  for (unsigned first = 0; first < 256; ++first) {
    for (unsigned second = 0; second < 256; ++second) {
      const std::string text = {static_cast<char>(first), static_cast<char>(second)};
      const std::string shown = terminal_text(text);
      REQUIRE_FALSE(find_invalid_utf8(shown));
      for (std::size_t i = 0; i < shown.size(); ++i) {
        const auto byte = static_cast<unsigned char>(shown[i]);
        REQUIRE((byte >= 0x20 || byte == '\n' || byte == '\t'));
        REQUIRE(byte != 0x7f);
        if (byte == 0xc2) REQUIRE(static_cast<unsigned char>(shown[i + 1]) >= 0xa0);
      }
    }
  }
}

TEST_CASE("a JSON document has the same value after its text was escaped") {
  const Json json{{"name", "a\x1b[2J \xc2\x9b \x7f \xe2\x80\xae \"x\"\n\t"}};
  CHECK(Json::parse(terminal_text(json_line(json))) == json);
}

TEST_CASE("a cell of a table stays in its line and its column") {
  TextTable table({{"class\x1b[0m"}, {"n", TextTable::Align::right}});
  table.add({"a\nb", "1"});
  CHECK(table.text() == "class\\u001b[0m  n\na\\u000ab        1\n");
}

}  // namespace
}  // namespace trainctl::terminal_text_test
