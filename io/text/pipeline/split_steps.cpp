// The steps that split by a known pattern, by characters or at a text, and those of Metaspace and ByteLevel.
#include <algorithm>

#include "io/text/pipeline/matched_parts.h"
#include "io/text/pipeline/pre_tokenizer.h"
#include "io/text/unicode/characters.h"

namespace trainctl {
namespace {

// Calls split(piece, out) for each piece and keeps the results.
template <class Split>
void replace_pieces(Pieces& pieces, const Split& split) {
  std::vector<std::string_view> out;
  out.reserve(pieces.pieces.size());
  for (const std::string_view piece : pieces.pieces) split(piece, out);
  pieces.pieces.swap(out);
}

class PatternStep final : public SplitStep {
 public:
  explicit PatternStep(std::unique_ptr<Splitter> splitter) : splitter_(std::move(splitter)) {}

  void split(Pieces& pieces) const override {
    replace_pieces(pieces, [this](std::string_view piece, std::vector<std::string_view>& out) {
      each_piece(*splitter_, piece, [&out](std::string_view part) { out.push_back(part); });
    });
  }

 private:
  std::unique_ptr<Splitter> splitter_;
};

class PrefixSpaceStep final : public SplitStep {
 public:
  void split(Pieces& pieces) const override {
    pieces.change_each([](std::string_view piece, bool) {
      return piece.front() == ' ' ? std::optional<std::string>() : " " + std::string(piece);
    });
  }
};

class CharacterStep final : public SplitStep {
 public:
  CharacterStep(CharacterTest test, MatchedPart part) : test_(test), part_(part) {}

  void split(Pieces& pieces) const override {
    replace_pieces(pieces, [this](std::string_view piece, std::vector<std::string_view>& out) {
      PartCollector parts(piece, part_, out);
      std::size_t plain = 0;  // the end of the last matched character
      for (std::size_t at = 0; at < piece.size();) {
        const Character character = first_character(piece.substr(at));
        if (test_(character.code)) {
          if (at > plain) parts.add(at, false);
          parts.add(plain = at + character.length, true);
        }
        at += character.length;
      }
      parts.add(piece.size(), false);
      parts.finish();
    });
  }

 private:
  CharacterTest test_;
  MatchedPart part_;
};

class LiteralStep final : public SplitStep {
 public:
  LiteralStep(std::string literal, MatchedPart part, bool inverted)
      : literal_(std::move(literal)), part_(part), inverted_(inverted) {}

  void split(Pieces& pieces) const override {
    replace_pieces(pieces, [this](std::string_view piece, std::vector<std::string_view>& out) {
      PartCollector parts(piece, part_, out);
      for (std::size_t at = 0; (at = piece.find(literal_, at)) != std::string_view::npos;) {
        parts.add(at, inverted_);
        parts.add(at += literal_.size(), !inverted_);
      }
      parts.add(piece.size(), inverted_);
      parts.finish();
    });
  }

 private:
  std::string literal_;
  MatchedPart part_;
  bool inverted_;
};

class WordStep final : public SplitStep {
 public:
  void split(Pieces& pieces) const override {
    replace_pieces(pieces, [](std::string_view piece, std::vector<std::string_view>& out) {
      enum class Kind { word, symbol, space };
      const auto kind_of = [](char32_t code) {
        return is_word_character(code) ? Kind::word : is_white_space(code) ? Kind::space : Kind::symbol;
      };
      Kind last = Kind::space;
      std::size_t begin = 0;
      for (std::size_t at = 0; at < piece.size();) {
        const Character character = first_character(piece.substr(at));
        const Kind kind = kind_of(character.code);
        if (kind != last && last != Kind::space) out.push_back(piece.substr(begin, at - begin));
        if (kind != last) begin = at;
        last = kind;
        at += character.length;
      }
      if (last != Kind::space) out.push_back(piece.substr(begin));
    });
  }
};

class MetaspaceStep final : public SplitStep {
 public:
  MetaspaceStep(std::string replacement, Prepend prepend, bool split)
      : replacement_(std::move(replacement)), prepend_(prepend), split_(split) {}

  void split(Pieces& pieces) const override {
    pieces.change_each([this](std::string_view piece, bool begins) -> std::optional<std::string> {
      std::string text;
      const bool has_space = piece.starts_with(' ') || piece.starts_with(replacement_);
      const bool prepends = prepend_ == Prepend::always || (prepend_ == Prepend::first && begins);
      if (!has_space && prepends) text = replacement_;
      for (const char c : piece) c == ' ' ? text += replacement_ : text += c;
      return text;
    });
    if (split_) LiteralStep(replacement_, MatchedPart::merged_with_next, false).split(pieces);
  }
  bool reads_begin() const override { return prepend_ == Prepend::first; }

 private:
  std::string replacement_;
  Prepend prepend_;
  bool split_;
};

}  // namespace

std::unique_ptr<SplitStep> make_pattern_step(std::unique_ptr<Splitter> splitter) {
  return std::make_unique<PatternStep>(std::move(splitter));
}
std::unique_ptr<SplitStep> make_prefix_space_step() { return std::make_unique<PrefixSpaceStep>(); }
std::unique_ptr<SplitStep> make_character_step(CharacterTest test, MatchedPart part) {
  return std::make_unique<CharacterStep>(test, part);
}
std::unique_ptr<SplitStep> make_literal_step(std::string literal, MatchedPart part, bool inverted) {
  return std::make_unique<LiteralStep>(std::move(literal), part, inverted);
}
std::unique_ptr<SplitStep> make_word_step() { return std::make_unique<WordStep>(); }
std::unique_ptr<SplitStep> make_metaspace_step(std::string replacement, Prepend prepend, bool split) {
  return std::make_unique<MetaspaceStep>(std::move(replacement), prepend, split);
}

}  // namespace trainctl
