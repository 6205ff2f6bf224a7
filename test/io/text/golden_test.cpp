// Compares ids and texts with those of tokenizers and tiktoken, which test/golden/make_tokenizers.py has written.
#include <map>

#include "core/base/json.h"
#include "io/text/load.h"
#include "test/catch.h"
#include "test/io/text/support.h"

namespace trainctl::test::golden_test {
namespace {

TEST_CASE("tokenizers: ids and decoded texts are those of the reference libraries") {
  std::map<std::string, std::unique_ptr<Tokenizer>> tokenizers;
  std::map<std::string, int> compared;
  for (const Json& one : parse_json(golden("cases.json"))) {
    const std::string file = one.at("file"), text = one.at("text");
    const std::string encoding = one.value("encoding", "");
    auto& tokenizer = tokenizers[file + encoding];
    if (!tokenizer) tokenizer = load_tokenizer(golden_path(file), encoding);
    CAPTURE(file, encoding, text);
    const auto expected = one.at("ids").get<std::vector<TokenId>>();
    const bool ranks = one.contains("special");
    CHECK(ids_of(*tokenizer, text, ranks ? SpecialText::plain : SpecialText::recognized) == expected);
    if (ranks) CHECK(ids_of(*tokenizer, text) == one.at("special").get<std::vector<TokenId>>());
    if (one.contains("decoded")) CHECK(tokenizer->decode(expected) == one.at("decoded").get<std::string>());
    const bool changes_text = file == "prefix_space.json" || file == "qwen2.json";
    if (tokenizer->takes_any_bytes() && !changes_text) CHECK(tokenizer->decode(expected) == text);
    ++compared[file + encoding];
  }
  CHECK(compared.size() == 15);
  for (const auto& [name, count] : compared) CHECK(count >= 28);
}

TEST_CASE("tokenizers: bert's file says what goes around a text") {
  const auto bert = load_tokenizer(golden_path("bert.json"));
  CHECK(bert->ids_before() == std::vector<TokenId>{2});
  CHECK(bert->ids_after() == std::vector<TokenId>{3});
  CHECK(bert->kind() == "WordPiece");
  REQUIRE(bert->special_tokens().size() == 4);
  CHECK(bert->special_tokens()[1] == SpecialToken{"[UNK]", 1});
}

}  // namespace
}  // namespace trainctl::test::golden_test
