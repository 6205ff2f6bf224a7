// Tests training: byte-level BPE equals the vocabularies of tokenizers, and WordPiece those that a person can compute.
#include "io/text/train/train.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "io/text/files/tokenizer_json.h"
#include "io/text/load.h"
#include "test/catch.h"
#include "test/io/text/support.h"

namespace trainctl::test::train_test {
namespace {

VocabularyRequest byte_level_request(Pattern pattern, std::int64_t min_frequency) {
  VocabularyRequest request;
  request.files = {golden_path("corpus.txt")};
  request.pattern = pattern;
  request.vocabulary_size = 700;
  request.min_frequency = min_frequency;
  request.special_tokens = {"<|endoftext|>", "<pad>"};
  return request;
}

TEST_CASE("training: byte-level BPE makes the vocabulary and the merges of tokenizers") {
  for (const auto& [pattern, name, frequency] :
       {std::tuple(Pattern::gpt2, "trained_gpt2.json", 0), std::tuple(Pattern::o200k, "trained_o200k.json", 3)}) {
    const TrainedTokenizer trained = train_tokenizer(byte_level_request(pattern, frequency));
    const TokenizerJson mine = parse_tokenizer_json(trained.json, "mine");
    TokenizerJson expected = parse_tokenizer_json(golden(name), name);
    std::sort(expected.vocabulary.begin(), expected.vocabulary.end(),
              [](const auto& a, const auto& b) { return a.second < b.second; });
    CHECK(mine.vocabulary == expected.vocabulary);
    CHECK(mine.merges == expected.merges);
    CHECK(mine.merges.size() > 200);
    const auto tokenizer = read_tokenizer(trained.json, "mine"), reference = load_tokenizer(golden_path(name));
    const std::string text = golden("corpus.txt") + "<|endoftext|>";
    CHECK(ids_of(*tokenizer, text) == ids_of(*reference, text));
    CHECK(tokenizer->special_tokens()[0] == SpecialToken{"<|endoftext|>", 0});
  }
}

TEST_CASE("training: the number of threads does not change the vocabulary") {
  VocabularyRequest request = byte_level_request(Pattern::llama3, 0);
  request.files.insert(request.files.end(), 3, golden_path("cases.json"));
  const std::string one = train_tokenizer(request).json;
  request.threads = 4;
  CHECK(train_tokenizer(request).json == one);
}

TEST_CASE("training: WordPiece merges the most frequent pairs, and numbers tokens in the order of their making") {
  // The pairs in the order of their counts: a ##b 96, ab ##c 32, c ##a 21, ca ##b 16, b ##c 11, bc ##a 8, d ##d 4.
  const WordCounts words = {{"ab", 64}, {"abc", 32}, {"bc", 3}, {"bca", 8}, {"ca", 5}, {"cab", 16}, {"dd", 4}};
  TrainingOptions options;
  options.continuing_prefix = "##";
  options.special_tokens = {"[UNK]"};
  options.vocabulary_size = 15;
  CHECK(train_bpe(words, options).tokens == std::vector<std::string>{"[UNK]", "a", "b", "c", "d", "##b", "##c", "##a",
                                                                     "##d", "ab", "abc", "ca", "cab", "bc", "bca"});
  options.vocabulary_size = 100;
  options.min_frequency = 11;
  CHECK(train_bpe(words, options).tokens.back() == "bc");
}

TEST_CASE("training: a word piece vocabulary is read again, and encodes its own words") {
  VocabularyRequest request;
  request.kind = VocabularyKind::word_piece;
  request.files = {golden_path("corpus.txt")};
  request.vocabulary_size = 1200;
  request.special_tokens = {"[PAD]", "[UNK]"};
  const auto tokenizer = read_tokenizer(train_tokenizer(request).json, "mine");
  CHECK(tokenizer->kind() == "WordPiece");
  const auto ids = ids_of(*tokenizer, "The single Man\n");
  CHECK(std::find(ids.begin(), ids.end(), 1) == ids.end());
  CHECK(tokenizer->decode(ids) == "the single man");
}

TEST_CASE("training refuses a vocabulary that is too small, and an empty corpus") {
  VocabularyRequest request = byte_level_request(Pattern::gpt2, 0);
  request.vocabulary_size = 100;
  CHECK_THROWS_WITH(train_tokenizer(request), Catch::Matchers::Contains("ask for at least 258 tokens"));
  request.files = {"/dev/null/nothing"};
  CHECK_THROWS_AS(train_tokenizer(request), Error);
}

}  // namespace
}  // namespace trainctl::test::train_test
