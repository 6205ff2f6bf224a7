// Splits a text into pieces by the steps that tokenizer.json calls pre-tokenizers.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/text/pipeline/growth.h"
#include "io/text/split/splitter.h"

namespace trainctl {

// The pieces of a text between steps. A piece refers to the text, or to one of the texts that a step has made.
struct Pieces {
  std::vector<std::string_view> pieces;
  std::deque<std::string> texts;
  // What stands for the first character of the whole text, before normalizers; empty if no piece has it.
  std::string_view begin;
  std::size_t left = 0;  // the number of bytes that steps may still keep

  // Whether a piece begins where the whole text begins.
  bool is_begin(std::string_view piece) const {
    const std::less<> before;
    return !before(piece.data(), begin.data()) && before(piece.data(), begin.data() + begin.size());
  }

  // Keeps a text, and returns a view of it. Throws Error{data} if steps keep too many bytes.
  std::string_view keep(std::string text) {
    if (text.size() > left) throw_grown();
    left -= text.size();
    return texts.emplace_back(std::move(text));
  }

  // Replaces each piece by the text that change(piece, is_begin(piece)) returns; a piece for which it returns no value
  // stays.
  template <class Change>
  void change_each(const Change& change) {
    std::string_view changed;  // the new `begin`
    for (std::string_view& piece : pieces) {
      const bool begins = is_begin(piece);
      if (std::optional<std::string> text = change(piece, begins)) piece = keep(std::move(*text));
      if (begins && changed.empty()) changed = piece.substr(0, 1);
    }
    begin = changed;
  }
};

class SplitStep {
 public:
  virtual ~SplitStep() = default;
  // Replaces each piece by the pieces into which the step splits it; none is empty.
  virtual void split(Pieces& pieces) const = 0;
  // Whether the step reads Pieces::begin.
  virtual bool reads_begin() const { return false; }
};

// What happens to a part of a text that matches a pattern.
enum class MatchedPart { removed, isolated, merged_with_previous, merged_with_next, contiguous };

// A test of characters, for steps that split by characters.
using CharacterTest = bool (*)(char32_t);

std::unique_ptr<SplitStep> make_pattern_step(std::unique_ptr<Splitter> splitter);
// ByteLevel with add_prefix_space: pieces that do not begin with a space get one.
std::unique_ptr<SplitStep> make_prefix_space_step();
std::unique_ptr<SplitStep> make_character_step(CharacterTest test, MatchedPart part);
// Splits at each occurrence of a text, which is not empty.
std::unique_ptr<SplitStep> make_literal_step(std::string literal, MatchedPart part, bool inverted);
// \w+|[^\w\s]+; white space is removed.
std::unique_ptr<SplitStep> make_word_step();
// Metaspace: spaces become `replacement`, which is also put in front if `prepend` says so. `first`: of the piece that
// begins where the whole text begins.
enum class Prepend { always, first, never };
std::unique_ptr<SplitStep> make_metaspace_step(std::string replacement, Prepend prepend, bool split);
// A regular expression that no Pattern has, compiled by PCRE2. Throws Error{data} that says where the expression is
// wrong.
std::unique_ptr<SplitStep> make_regex_step(const std::string& regex, MatchedPart part, bool inverted);

}  // namespace trainctl
