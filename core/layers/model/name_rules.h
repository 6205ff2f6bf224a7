// Rules, given in a preset or config, that turn the path of a layer into the name that another program uses for the
// layer.
//
//   ^conv1$ -> features.0                       replaces the text before the arrow by the text after it; ^ and $ mean
//                                               the beginning and the end of the name
//   stage{s}/{n}/block/ -> layer{s}.{n+1}.      {s} matches a number, which a factor and an offset may change after the
//   block1_conv{n} -> features.{2n-2}           arrow: {2n-2} is 2 * n - 2
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trainctl {

class NameRule {
 public:
  // Throws Error{config} that explains the problem if the text is not a rule.
  explicit NameRule(const std::string& text);

  // Returns the name with its first match replaced; returns the name itself if there is no match.
  std::string apply(const std::string& name) const;

 private:
  // A text, or a number under a variable's name: factor * variable + offset.
  struct Piece {
    std::string text;
    bool number = false;
    std::int64_t factor = 1, offset = 0;
  };
  static std::vector<Piece> pieces_of(const std::string& text, bool computes);

  bool begins_ = false, ends_ = false;  // matches only at the beginning, or the end, of a name
  std::vector<Piece> from_, to_;
};

// Applies the rules one after the other.
std::string renamed(std::string name, const std::vector<NameRule>& rules);

}  // namespace trainctl
