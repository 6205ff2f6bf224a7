// Tests that the bytes of tokens add up to the bytes of a text, for tokenizers of all kinds.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "core/base/json.h"
#include "io/datasets/text/text_tokenizer.h"
#include "io/text/load.h"
#include "test/catch.h"
#include "test/io/text/support.h"

namespace trainctl::test::token_bytes_test {
namespace {

double sum_of(const std::vector<float>& bytes, const std::vector<TokenId>& ids) {
  return std::accumulate(ids.begin(), ids.end(), 0.0,
                         [&](double sum, TokenId id) { return sum + bytes.at(static_cast<std::size_t>(id)); });
}

}  // namespace

TEST_CASE("the bytes of a text's tokens add up to the bytes of the text") {
  struct Counted {
    std::unique_ptr<Tokenizer> tokenizer;
    std::vector<float> bytes;
  };
  std::map<std::string, Counted> tokenizers;
  std::map<std::string, int> compared;
  for (const Json& one : parse_json(golden("cases.json"))) {
    const std::string file = one.at("file"), text = one.at("text"), encoding = one.value("encoding", "");
    Counted& counted = tokenizers[file + encoding];
    if (!counted.tokenizer) {
      counted.tokenizer = load_tokenizer(golden_path(file), encoding);
      counted.bytes = bytes_of_tokens(*counted.tokenizer);
    }
    const std::vector<TokenId> ids = ids_of(*counted.tokenizer, text, SpecialText::plain);
    const auto is_special = [&](TokenId id) {
      const auto& special = counted.tokenizer->special_tokens();
      return std::ranges::any_of(special, [id](const SpecialToken& token) { return token.id == id; }) &&
             counted.bytes.at(static_cast<std::size_t>(id)) == 0;
    };
    // Other tokenizers leave out letters or their case.
    if (ids.empty() || std::ranges::any_of(ids, is_special) || counted.tokenizer->decode(ids) != text) continue;
    CAPTURE(file, encoding, text);
    const auto size = static_cast<double>(text.size()), sum = sum_of(counted.bytes, ids);
    // Some tokenizers put a space before a text, which no decoder returns.
    const bool fits = sum == size || (!counted.tokenizer->takes_any_bytes() && sum == size + 1);
    CHECK(fits);
    ++compared[file];
  }
  for (const char* file : {"gpt2.json", "llama3.json", "sp_bpe.model", "sp_unigram.model", "small.tiktoken"}) {
    CAPTURE(file);
    CHECK(compared[file] >= 10);
  }
}

TEST_CASE("special tokens stand for no text") {
  const TextTokenizer bytes = open_tokenizer(NamedTokenizer::bytes);
  const auto counts = counter_of_bytes(bytes.tokenizer);
  const auto table = counts();
  REQUIRE(table->size() == 257);
  for (std::size_t i = 0; i < 256; ++i) CHECK((*table)[i] == 1);
  CHECK((*table)[256] == 0);
  CHECK(counts() == table);
}

TEST_CASE("the unknown token is that of the vocabulary, and stands for no bytes") {
  const std::pair<std::string, std::optional<TokenId>> expected[] = {{"bert.json", 1},    {"words.json", 0},
                                                                     {"unigram.json", 2}, {"sp_bpe.model", 0},
                                                                     {"gpt2.json", {}},   {"llama3.json", {}}};
  for (const auto& [file, id] : expected) {
    CAPTURE(file);
    const auto tokenizer = load_tokenizer(golden_path(file));
    CHECK(tokenizer->unknown_token() == id);
    if (id) CHECK(bytes_of_tokens(*tokenizer)[static_cast<std::size_t>(*id)] == 0);
  }
  CHECK_FALSE(open_tokenizer(NamedTokenizer::bytes).tokenizer->unknown_token());
}

}  // namespace trainctl::test::token_bytes_test
