// Tests the scanners of patterns: their pieces are those of regular expressions, for any number of pieces at a time.
#include "core/base/json.h"
#include "io/text/split/splitter.h"
#include "test/catch.h"
#include "test/io/text/support.h"

namespace trainctl::test::split_test {
namespace {

// The pieces of a text, `limit` at a time.
std::vector<std::string> pieces_of(const Splitter& splitter, const std::string& text, std::size_t limit) {
  std::vector<std::string> pieces;
  std::vector<const char*> ends(limit);
  const char *begin = text.data(), *end = begin + text.size();
  while (begin < end) {
    const std::size_t count = splitter.cut(begin, end, ends.data(), limit);
    REQUIRE(count >= 1);
    for (std::size_t i = 0; i < count; begin = ends[i++]) pieces.emplace_back(begin, ends[i]);
  }
  return pieces;
}

TEST_CASE("scanners cut texts as the regular expressions of their patterns do") {
  const std::pair<const char*, Pattern> patterns[] = {{"gpt2", Pattern::gpt2},
                                                      {"cl100k", Pattern::cl100k},
                                                      {"llama3", Pattern::llama3},
                                                      {"qwen2", Pattern::qwen2},
                                                      {"o200k", Pattern::o200k}};
  int texts = 0;
  for (const Json& row : parse_json(golden("pieces.json"))) {
    const std::string text = row.at("text");
    for (const auto& [name, pattern] : patterns) {
      CAPTURE(name, text);
      const auto expected = row.at("pieces").at(name).get<std::vector<std::string>>();
      CHECK(pieces_of(*make_splitter(pattern), text, 1) == expected);
      CHECK(pieces_of(*make_splitter(pattern), text, 100) == expected);
    }
    ++texts;
  }
  CHECK(texts > 25);
}

TEST_CASE("a pattern is found by its regular expression") {
  for (const Pattern pattern : {Pattern::gpt2, Pattern::llama3, Pattern::qwen2, Pattern::o200k}) {
    Pattern found = Pattern::cl100k;
    CHECK((find_pattern(pattern_text(pattern), found) && found == pattern));
  }
  Pattern found = Pattern::gpt2;
  CHECK_FALSE(find_pattern(R"(\p{L}+)", found));
}

}  // namespace
}  // namespace trainctl::test::split_test
