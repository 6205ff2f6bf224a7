// Joins the matched and unmatched parts of a piece as a split step's behaviour says.
#pragma once

#include <string_view>
#include <vector>

#include "io/text/pipeline/pre_tokenizer.h"

namespace trainctl {

// Collects the parts of one piece in their order, and appends the pieces that they form to a list.
class PartCollector {
 public:
  PartCollector(std::string_view whole, MatchedPart part, std::vector<std::string_view>& out)
      : whole_(whole), part_(part), out_(out) {}

  // Adds the part of `whole` up to the offset `end`; empty parts are ignored.
  void add(std::size_t end, bool matched);
  // Adds an empty match, which separates the parts around it.
  void add_empty(bool matched);
  // Appends what is left.
  void finish() { flush(); }

 private:
  void flush();
  bool grows(bool matched) const;

  std::string_view whole_;
  MatchedPart part_;
  std::vector<std::string_view>& out_;
  std::size_t begin_ = 0, end_ = 0;  // of the piece that may still grow
  bool matched_ = false;             // whether its last part matched
};

}  // namespace trainctl
