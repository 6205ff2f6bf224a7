// The five behaviours of split steps.
#include "io/text/pipeline/matched_parts.h"

namespace trainctl {

void PartCollector::flush() {
  if (end_ > begin_) out_.push_back(whole_.substr(begin_, end_ - begin_));
  begin_ = end_;
}

void PartCollector::add(std::size_t end, bool matched) {
  if (end == end_) return;
  const bool grows = end_ > begin_ && ((part_ == MatchedPart::contiguous && matched == matched_) ||
                                       (part_ == MatchedPart::merged_with_previous && matched && !matched_) ||
                                       (part_ == MatchedPart::merged_with_next && matched_ && !matched));
  if (!grows) flush();
  end_ = end;
  matched_ = matched;
  if (part_ == MatchedPart::removed && matched) begin_ = end_;
}

}  // namespace trainctl
