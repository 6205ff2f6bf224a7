// Compares steps with regular expressions, incomplete byte-level vocabularies and decoders with tokenizers and
// SentencePiece, by the values that test/golden/make_regexes.py has written.
#include "core/base/error.h"
#include "core/base/json.h"
#include "io/text/files/tokenizer_json.h"
#include "io/text/load.h"
#include "io/text/pipeline/normalizer.h"
#include "io/text/pipeline/pre_tokenizer.h"
#include "test/catch.h"
#include "test/io/text/support.h"

namespace trainctl::test::steps_test {
namespace {

const Json& cases() {
  static const Json all = parse_json(golden("steps.json"));
  return all;
}

const std::vector<std::string>& texts() {
  static const auto all = cases()[0].at("texts").get<std::vector<std::string>>();
  return all;
}

MatchedPart part_of(const std::string& name) {
  if (name == "Removed") return MatchedPart::removed;
  if (name == "MergedWithPrevious") return MatchedPart::merged_with_previous;
  if (name == "MergedWithNext") return MatchedPart::merged_with_next;
  return name == "Contiguous" ? MatchedPart::contiguous : MatchedPart::isolated;
}

// The error of reading a tokenizer whose pre-tokenizer has an expression.
std::string error_of(const std::string& expression) {
  try {
    make_regex_step(expression, MatchedPart::isolated, false);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST_CASE("regular expressions split texts as they do for tokenizers") {
  int compared = 0;
  for (const Json& one : cases()) {
    if (!one.contains("split")) continue;
    const std::string expression = one.at("split"), behavior = one.at("behavior");
    const bool inverted = one.at("invert");
    const auto step = make_regex_step(expression, part_of(behavior), inverted);
    for (std::size_t i = 0; i < texts().size(); ++i, ++compared) {
      CAPTURE(expression, behavior, inverted, texts()[i]);
      Pieces pieces{{texts()[i]}, {}, true, 1000};
      step->split(pieces);
      const std::vector<std::string> found(pieces.pieces.begin(), pieces.pieces.end());
      CHECK(found == one.at("pieces")[i].get<std::vector<std::string>>());
    }
  }
  CHECK(compared > 2500);
}

TEST_CASE("regular expressions replace parts of texts, and empty matches, as they do for tokenizers") {
  int compared = 0;
  for (const Json& one : cases()) {
    if (!one.contains("replace")) continue;
    const std::string expression = one.at("replace");
    const auto step = make_regex_replace(expression, "-");
    for (std::size_t i = 0; i < texts().size(); ++i, ++compared) {
      CAPTURE(expression, texts()[i]);
      std::string text = texts()[i];
      step->normalize(text);
      CHECK(text == one.at("replaced")[i].get<std::string>());
    }
  }
  CHECK(compared > 150);
}

TEST_CASE("bytes without tokens, white space around added tokens, and Metaspace's decoder are those of tokenizers") {
  int compared = 0;
  for (const Json& one : cases()) {
    if (!one.contains("tokenizer")) continue;
    const auto tokenizer = read_tokenizer_json(json_text(one.at("tokenizer")), "t.json");
    CAPTURE(json_text(one.at("tokenizer")));
    for (const Json& encoding : one.at("encodings")) {
      const auto ids = encoding.at("ids").get<std::vector<TokenId>>();
      const std::string text = encoding.at("text");
      CAPTURE(text);
      CHECK(ids_of(*tokenizer, text) == ids);
      if (one.at("tokenizer").at("added_tokens").empty() && tokenizer->kind() == "WordLevel")
        CHECK(tokenizer->decode(ids) == encoding.at("decoded").get<std::string>());
      ++compared;
    }
    CHECK(tokenizer->unknown_token() == std::optional<TokenId>(0));
  }
  CHECK(compared == 40);
}

TEST_CASE("the options of SentencePiece's models decide how texts begin and what is unknown") {
  int compared = 0;
  for (const Json& one : cases()) {
    if (!one.contains("model")) continue;
    const std::string model = one.at("model");
    const auto tokenizer = load_tokenizer(golden_path(model));
    for (const Json& encoding : one.at("encodings")) {
      const auto ids = encoding.at("ids").get<std::vector<TokenId>>();
      CAPTURE(model, ids);
      CHECK(tokenizer->decode(ids) == encoding.at("decoded").get<std::string>());
      ++compared;
    }
  }
  CHECK(compared == 20);
}

TEST_CASE("a regular expression without a translation is refused") {
  CHECK(error_of(R"([a-z&&[^aeiou]])").empty());
  CHECK(error_of(R"(a\y)").find("border of a grapheme") != std::string::npos);
  CHECK(error_of(R"([a-[bc]])").find("a hyphen before a class at byte 3") != std::string::npos);
  CHECK(error_of(R"([a-z)").find("a class without an end at byte 0") != std::string::npos);
  CHECK(error_of(R"(\p{Han)").find("a property without an end") != std::string::npos);
  CHECK(error_of(std::string(100, '[')).find("classes in classes") != std::string::npos);
  CHECK(error_of(R"((a)").find("wrong") != std::string::npos);
}

}  // namespace
}  // namespace trainctl::test::steps_test
