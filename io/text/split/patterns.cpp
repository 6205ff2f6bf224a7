// The regular expressions of the known patterns, by which tokenizer.json names them.
#include <string>

#include "io/text/split/splitter.h"

namespace trainctl {
namespace {

struct PatternText {
  Pattern pattern;
  std::string_view text;
};

constexpr std::string_view contractions = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";

// The first text of a pattern is the one that is shown.
const std::vector<PatternText>& pattern_texts() {
  static const std::string rest = R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  static const std::string words = std::string(contractions) + R"(|[^\r\n\p{L}\p{N}]?\p{L}+|)";
  static const std::string llama3 = words + R"(\p{N}{1,3}|)" + rest;
  static const std::string qwen2 = words + R"(\p{N}|)" + rest;
  static const std::string o200k =
      R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)" + std::string(contractions) +
      R"(?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)" + std::string(contractions) +
      R"(?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  static const std::vector<PatternText> texts = {
      {Pattern::gpt2, R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"},
      {Pattern::gpt2, R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"},
      {Pattern::llama3, llama3},
      {Pattern::llama3,
       R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"},
      {Pattern::qwen2, qwen2},
      {Pattern::o200k, o200k},
  };
  return texts;
}

}  // namespace

std::string_view pattern_text(Pattern pattern) {
  for (const PatternText& each : pattern_texts()) {
    if (each.pattern == pattern) return each.text;
  }
  return "";
}

bool find_pattern(std::string_view regex, Pattern& pattern) {
  for (const PatternText& each : pattern_texts()) {
    if (each.text != regex) continue;
    pattern = each.pattern;
    return true;
  }
  return false;
}

}  // namespace trainctl
