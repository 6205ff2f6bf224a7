// Splits a text into pieces by the steps that tokenizer.json calls pre-tokenizers.
#pragma once

#include <deque>
#include <memory>
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
  bool at_begin = false;  // the first piece is the beginning of the whole text
  std::size_t left = 0;   // the number of bytes that steps may still keep

  // Keeps a text, and returns a view of it. Throws Error{data} if steps keep too many bytes.
  std::string_view keep(std::string text) {
    if (text.size() > left) throw_grown();
    left -= text.size();
    return texts.emplace_back(std::move(text));
  }
};

class SplitStep {
 public:
  virtual ~SplitStep() = default;
  // Replaces each piece by the pieces into which the step splits it; none is empty.
  virtual void split(Pieces& pieces) const = 0;
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
// Metaspace: spaces become `replacement`, which is also put in front if `prepend` says so.
enum class Prepend { always, first, never };
std::unique_ptr<SplitStep> make_metaspace_step(std::string replacement, Prepend prepend, bool split);
// A regular expression that no Pattern has, compiled by PCRE2. Throws Error{data} that says where the expression is
// wrong.
std::unique_ptr<SplitStep> make_regex_step(const std::string& regex, MatchedPart part, bool inverted);

}  // namespace trainctl
