// Rules that turn the path of a layer into the name that another program gave the layer, as data in a preset or config.
//
//   ^conv1$ -> features.0                       replaces what stands before the arrow by what stands behind it; ^ and $
//                                               are the beginning and the end of the name
//   stage{s}/{n}/block/ -> layer{s}.{n+1}.      {s} stands for a number; behind the arrow it may be multiplied and
//   moved: block1_conv{n} -> features.{2n-2}           {2n-2} is 2 * n - 2
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trainctl {

class NameRule {
 public:
  // Throws Error{config} with what is wrong in a text that is no rule.
  explicit NameRule(const std::string& text);

  // The name with the first place that fits replaced; the name itself where none fits.
  std::string apply(const std::string& name) const;

 private:
  // A text, or a number under a variable's name: factor * variable + offset.
  struct Piece {
    std::string text;
    bool number = false;
    std::int64_t factor = 1, offset = 0;
  };
  static std::vector<Piece> pieces_of(const std::string& text, bool computes);

  bool begins_ = false, ends_ = false;  // fits only at the beginning, or the end, of a name
  std::vector<Piece> from_, to_;
};

// Applies the rules one after the other.
std::string renamed(std::string name, const std::vector<NameRule>& rules);

}  // namespace trainctl
