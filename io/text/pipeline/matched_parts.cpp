// The five behaviours of split steps.
#include "io/text/pipeline/matched_parts.h"

namespace trainctl {

void PartCollector::flush() {
  if (end_ > begin_) out_.push_back(whole_.substr(begin_, end_ - begin_));
  begin_ = end_;
}

// Whether the piece so far grows by a part.
bool PartCollector::grows(bool matched) const {
  return end_ > begin_ && ((part_ == MatchedPart::contiguous && matched == matched_) ||
                           (part_ == MatchedPart::merged_with_previous && matched && !matched_) ||
                           (part_ == MatchedPart::merged_with_next && matched_ && !matched));
}

void PartCollector::add_empty(bool matched) {
  if (!grows(matched)) flush();
  matched_ = matched;
}

void PartCollector::add(std::size_t end, bool matched) {
  if (end == end_) return;
  if (!grows(matched)) flush();
  end_ = end;
  matched_ = matched;
  if (part_ == MatchedPart::removed && matched) begin_ = end_;
}

}  // namespace trainctl
