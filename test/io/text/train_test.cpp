// Tests training: byte-level BPE equals the vocabularies of tokenizers, and WordPiece those that a person can compute.
#include "io/text/train/train.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

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

TEST_CASE("training: a word piece vocabulary frames a text by CLS and SEP if it has both") {
  VocabularyRequest request;
  request.kind = VocabularyKind::word_piece;
  request.files = {golden_path("corpus.txt")};
  request.vocabulary_size = 1200;
  request.special_tokens = {"[UNK]", "[SEP]", "[PAD]", "[CLS]"};
  const Json written = Json::parse(train_tokenizer(request).json)["post_processor"];
  CHECK(written == Json::parse(R"({"type": "BertProcessing", "sep": ["[SEP]", 1], "cls": ["[CLS]", 3]})"));
  const auto tokenizer = read_tokenizer(train_tokenizer(request).json, "mine");
  CHECK(tokenizer->ids_before() == std::vector<TokenId>{3});
  CHECK(tokenizer->ids_after() == std::vector<TokenId>{1});
  request.special_tokens = {"[UNK]", "[SEP]"};
  CHECK(read_tokenizer(train_tokenizer(request).json, "mine")->ids_after().empty());
}

TEST_CASE("training counts the words of further texts as of lines of a file, on any number of threads") {
  std::vector<std::string> texts;
  std::string lines;
  std::mt19937 random(6);
  for (int i = 0; i < 300; ++i) {
    std::string text;
    for (int k = 0; k < 9; ++k) text += "w" + std::to_string(random() % 40) + " ";
    texts.push_back(text + "\n");
    lines += texts.back();
  }
  const std::string path = std::filesystem::temp_directory_path() / ("trainctl-lines-" + std::to_string(getpid()));
  std::ofstream(path) << lines;
  VocabularyRequest of_file = byte_level_request(Pattern::gpt2, 0), of_texts = of_file;
  of_file.files = {path};
  of_texts.files.clear();
  const std::string expected = train_tokenizer(of_file).json;
  std::filesystem::remove(path);
  for (const int threads : {1, 3}) {
    std::size_t next = 0;
    of_texts.threads = threads;
    of_texts.texts = [&]() -> std::optional<Texts> {
      if (next == texts.size()) return std::nullopt;
      return [text = texts[next++]](const auto& visit) { visit(text, "a text"); };
    };
    CHECK(train_tokenizer(of_texts).json == expected);
  }
  of_texts.kind = VocabularyKind::word_piece;
  of_texts.special_tokens = {"[UNK]"};
  bool given = false;
  of_texts.texts = [&]() -> std::optional<Texts> {
    if (std::exchange(given, true)) return std::nullopt;
    return [](const auto& visit) { visit("caf\xe9", "a.jsonl, line 4"); };
  };
  CHECK_THROWS_WITH(train_tokenizer(of_texts), Catch::Matchers::Contains("a.jsonl, line 4: byte 3 is not UTF-8"));
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
