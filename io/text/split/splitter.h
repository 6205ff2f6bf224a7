// Splits a text into the pieces that a vocabulary encodes one by one, by the pattern of a known family of vocabularies.
#pragma once

#include <cstddef>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>

namespace trainctl {

// Cuts a text into pieces that cover all its bytes. Bytes that are not UTF-8 count as symbols, as U+FFFD does.
class Splitter {
 public:
  virtual ~Splitter() = default;

  // Writes the ends of the next pieces of [begin, end), at most `limit` (at least 1), and returns their number. The
  // text ends at `end`; the piece after the last end written begins there.
  virtual std::size_t cut(const char* begin, const char* end, const char** ends, std::size_t limit) const = 0;
};

// Calls found(piece) for each piece of a text.
template <class Found>
void each_piece(const Splitter& splitter, std::string_view text, const Found& found) {
  const char* ends[64];
  const char *begin = text.data(), *end = begin + text.size();
  while (begin < end) {
    const std::size_t count = splitter.cut(begin, end, ends, std::size(ends));
    for (std::size_t i = 0; i < count; begin = ends[i++]) {
      found(std::string_view(begin, static_cast<std::size_t>(ends[i] - begin)));
    }
  }
}

// The patterns for which a scanner is written; all other patterns are compiled by PCRE2 (regex.h).
enum class Pattern {
  gpt2,    // GPT-2, and the rank files r50k and p50k
  cl100k,  // the rank file cl100k, in which white space at the end of a text is one piece
  llama3,  // the tokenizer.json of cl100k, Llama 3 and others
  qwen2,   // as llama3, but each digit is a piece
  o200k,   // the rank file o200k and its tokenizer.json
};

// The regular expression of a pattern, as tokenizer.json has it; "" for cl100k, which only rank files have.
std::string_view pattern_text(Pattern pattern);
// The pattern that has exactly this regular expression, or one that differs in its spelling only. Returns false if
// there is none.
bool find_pattern(std::string_view regex, Pattern& pattern);

// Creates the splitter of a pattern.
std::unique_ptr<Splitter> make_splitter(Pattern pattern);

}  // namespace trainctl
