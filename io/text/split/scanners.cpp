// Scanners of the known patterns: each one finds the end of the piece that begins at a position, without a table
// of states.
#include <type_traits>

#include "io/text/split/character.h"
#include "io/text/split/splitter.h"

namespace trainctl {
namespace {

// The end of the run of characters that have one of the classes.
const char* run_end(const CharacterClasses& classes, const char* at, const char* end, std::uint8_t kinds) {
  while (at < end) {
    std::uint8_t kind = 0;
    const char* next = classes.read(at, end, kind);
    if ((kind & kinds) == 0) break;
    at = next;
  }
  return at;
}

// The end of 's, 't, 'm, 'd, 'll, 've or 're at `at`; `at` itself if there is none. Without regard to case, U+017F is
// an s.
template <bool any_case>
const char* contraction_end(const char* at, const char* end) {
  if (end - at < 2 || *at != '\'') return at;
  const auto letter = [&](int i) { return any_case && at[i] >= 'A' && at[i] <= 'Z' ? at[i] + ('a' - 'A') : at[i]; };
  switch (letter(1)) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return at + 2;
    case 'l':
      return end - at > 2 && letter(2) == 'l' ? at + 3 : at;
    case 'v':
    case 'r':
      return end - at > 2 && letter(2) == 'e' ? at + 3 : at;
    default:
      return any_case && end - at > 2 && at[1] == '\xc5' && at[2] == '\xbf' ? at + 3 : at;
  }
}

// The end of a piece that begins with white space and that no other rule takes: up to the last line end of the run if
// `lines`; otherwise all of a run at the end of the text, the run without its last character, or that character.
template <bool lines, bool whole_end>
const char* white_space_end(const CharacterClasses& classes, const char* at, const char* end) {
  const char *next = at, *last = at, *after_line = nullptr;  // `last`: where the last character of the run begins
  while (next < end) {
    std::uint8_t kind = 0;
    const char* after = classes.read(next, end, kind);
    if ((kind & white_space) == 0) break;
    if (kind == line_end) after_line = after;
    last = next;
    next = after;
  }
  if (whole_end && next == end) return end;
  if (lines && after_line != nullptr) return after_line;
  return next == end || last == at ? next : last;
}

// '(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
struct Gpt2Scanner {
  static const char* piece_end(const CharacterClasses& classes, const char* at, const char* end) {
    if (*at == '\'') {
      const char* contraction = contraction_end<false>(at, end);
      if (contraction != at) return contraction;
    }
    std::uint8_t kind = 0;
    const char* next = classes.read(at, end, kind);
    if (*at == ' ' && next < end) {
      std::uint8_t second = 0;
      const char* after = classes.read(next, end, second);
      if ((second & white_space) == 0) kind = second, next = after;
    }
    if (kind & letter_character) return run_end(classes, next, end, letter_character);
    if (kind & number_character) return run_end(classes, next, end, number_character);
    if (kind & white_space) return white_space_end<false, true>(classes, at, end);
    return run_end(classes, next, end, symbol_character | mark_character);
  }
};

// The rules that cl100k and o200k share, for a piece that is no word; `kind` and `next` are its first character's.
template <int digits, bool whole_end, bool slashes>
const char* other_end(const CharacterClasses& classes, const char* at, const char* end, std::uint8_t kind,
                      const char* next) {
  if (kind & number_character) {
    for (int i = 1; i < digits && next < end; ++i) {
      std::uint8_t more = 0;
      const char* after = classes.read(next, end, more);
      if ((more & number_character) == 0) break;
      next = after;
    }
    return next;
  }
  constexpr std::uint8_t symbols = symbol_character | mark_character;
  if (*at == ' ' && next < end) {
    std::uint8_t second = 0;
    const char* after = classes.read(next, end, second);
    if (second & symbols) kind = second, next = after;
  }
  if (kind & white_space) return white_space_end<true, whole_end>(classes, at, end);
  next = run_end(classes, next, end, symbols);
  while (next < end && (*next == '\r' || *next == '\n' || (slashes && *next == '/'))) ++next;
  return next;
}

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,digits}|
// ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
template <int digits, bool whole_end>
struct Cl100kScanner {
  static const char* piece_end(const CharacterClasses& classes, const char* at, const char* end) {
    if (*at == '\'') {
      const char* contraction = contraction_end<true>(at, end);
      if (contraction != at) return contraction;
    }
    std::uint8_t kind = 0;
    const char* next = classes.read(at, end, kind);
    if (kind & letter_character) return run_end(classes, next, end, letter_character);
    if ((kind & (line_end | number_character)) == 0) {
      const char* word = run_end(classes, next, end, letter_character);
      if (word != next) return word;
    }
    return other_end<digits, whole_end, false>(classes, at, end, kind, next);
  }
};

// o200k's words are [Lu Lt Lm Lo M]* [Ll Lm Lo M]+ or [Lu Lt Lm Lo M]+ [Ll Lm Lo M]*, with a contraction at their end.
struct O200kScanner {
  static constexpr std::uint8_t shared = caseless_letter | mark_character;

  // The end of a word that begins at `at`; `at` itself if none begins there. The upper part takes as many characters as
  // it can, and gives back the last one that the lower part can have. Without a lower part, it is a word if
  // `all_upper`.
  static const char* word_end(const CharacterClasses& classes, const char* at, const char* end, bool all_upper) {
    const char *next = at, *after_shared = nullptr;
    while (next < end) {
      std::uint8_t kind = 0;
      const char* after = classes.read(next, end, kind);
      if (kind == lower_letter) return run_end(classes, after, end, lower_letter | shared);
      if ((kind & (upper_letter | shared)) == 0) break;
      if (kind & shared) after_shared = after;
      next = after;
    }
    if (after_shared != nullptr) return after_shared;
    return all_upper ? next : at;
  }

  static const char* piece_end(const CharacterClasses& classes, const char* at, const char* end) {
    std::uint8_t kind = 0;
    const char* next = classes.read(at, end, kind);
    if (kind & letter_character) return contraction_end<true>(word_end(classes, at, end, true), end);
    if ((kind & (line_end | number_character)) == 0) {
      const bool mark = kind == mark_character;  // may stand before a word, or begin it
      const char* word = word_end(classes, next, end, !mark);
      if (word == next && mark) return contraction_end<true>(next, end);
      if (word != next) return contraction_end<true>(word, end);
    }
    return other_end<3, false, true>(classes, at, end, kind, next);
  }
};

template <class Scanner>
class ScanningSplitter final : public Splitter {
 public:
  std::size_t cut(const char* begin, const char* end, const char** ends, std::size_t limit) const override {
    std::size_t count = 0;
    while (begin < end && count < limit) ends[count++] = begin = Scanner::piece_end(classes_, begin, end);
    return count;
  }

 private:
  const CharacterClasses& classes_ = character_classes();
};

}  // namespace

std::unique_ptr<Splitter> make_splitter(Pattern pattern) {
  switch (pattern) {
    case Pattern::gpt2:
      return std::make_unique<ScanningSplitter<Gpt2Scanner>>();
    case Pattern::cl100k:
      return std::make_unique<ScanningSplitter<Cl100kScanner<3, true>>>();
    case Pattern::llama3:
      return std::make_unique<ScanningSplitter<Cl100kScanner<3, false>>>();
    case Pattern::qwen2:
      return std::make_unique<ScanningSplitter<Cl100kScanner<1, false>>>();
    case Pattern::o200k:
      return std::make_unique<ScanningSplitter<O200kScanner>>();
  }
  return nullptr;
}

}  // namespace trainctl
