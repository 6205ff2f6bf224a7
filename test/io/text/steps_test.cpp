// Compares steps with regular expressions, incomplete byte-level vocabularies and decoders with tokenizers and
// SentencePiece, by the values that test/golden/make_regexes.py has written.
#include <chrono>

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
      Pieces pieces{{texts()[i]}, {}, {}, 1000};
      step->split(pieces);
      const std::vector<std::string> found(pieces.pieces.begin(), pieces.pieces.end());
      CHECK(found == one.at("pieces")[i].get<std::vector<std::string>>());
    }
  }
  CHECK(compared > 2500);
}

TEST_CASE("regular expressions match runs of 100,000 characters as they do for tokenizers") {
  int compared = 0;
  for (const Json& one : cases()) {
    if (!one.contains("run")) continue;
    const std::string expression = one.at("run");
    CAPTURE(expression);
    std::string text = "1";
    for (int i = 0; i < one.at("times"); ++i) text += one.at("text").get<std::string>();
    text += "\n";
    Pieces pieces{{text}, {}, {}, 1000};
    make_regex_step(expression, MatchedPart::isolated, false)->split(pieces);
    std::vector<std::size_t> lengths;
    for (const std::string_view piece : pieces.pieces) lengths.push_back(piece.size());
    CHECK(lengths == one.at("lengths").get<std::vector<std::size_t>>());
    ++compared;
  }
  CHECK(compared == 6);
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

TEST_CASE(
    "bytes without tokens, white space around added tokens, and Metaspace with its decoder are those of tokenizers") {
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
      if (one.at("tokenizer").at("added_tokens").empty())
        CHECK(tokenizer->decode(ids) == encoding.at("decoded").get<std::string>());
      ++compared;
    }
    CHECK(tokenizer->unknown_token() == std::optional<TokenId>(0));
  }
  CHECK(compared == 2143);
}

TEST_CASE("added tokens in long white space take time in proportion to its length") {
  for (const std::string strip : {R"("rstrip":true)", R"("lstrip":true)", R"("lstrip":true,"rstrip":true)"}) {
    const auto tokenizer =
        read_tokenizer_json(R"({"added_tokens":[{"id":1,"content":"\n",)" + strip +
                                R"(}],"model":{"type":"WordLevel","unk_token":"a","vocab":{"a":0}}})",
                            "t.json");
    CAPTURE(strip);
    const auto start = std::chrono::steady_clock::now();
    const auto ids = ids_of(*tokenizer, std::string(1'000'000, '\n'));
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));  // a square of it took an hour
    CHECK(ids == std::vector<TokenId>(strip.find(',') == std::string::npos ? 1'000'000 : 1, 1));
  }
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
  CHECK(error_of(R"((*ACCEPT)a)").find("a callout at byte 0") != std::string::npos);
}

TEST_CASE("hostile regular expressions are refused before they take much time or stack") {
  const auto repeated = [](int times, const std::string& text) {
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
  };
  CHECK(error_of(std::string(30000, '(')).find("groups in groups, more than 200") != std::string::npos);
  CHECK(error_of(repeated(20000, "(?i)")).find("groups in groups, more than 200") != std::string::npos);
  CHECK(error_of("a" + repeated(20000, "{2}")).find("repeats more than 1000 counts") != std::string::npos);
  CHECK(error_of(std::string(100001, 'a')).find("more than 100000 bytes") != std::string::npos);
  CHECK(error_of("[" + repeated(20000, "[:a]")).find("a class without an end") != std::string::npos);
  CHECK(!error_of(std::string(90000, ')')).empty());
}

}  // namespace
}  // namespace trainctl::test::steps_test
