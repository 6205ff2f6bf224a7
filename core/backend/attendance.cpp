// Throws the errors that name missing ranks, and ends waits.
#include "core/backend/attendance.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/format.h"

namespace trainctl {

using std::chrono::milliseconds;

std::string Attendance::name(const std::vector<int>& ranks) const {
  std::string text = ranks.size() == 1 ? "rank" : "ranks";
  for (std::size_t i = 0; i < ranks.size(); ++i) text += format("{}{}", i ? ", " : " ", ranks[i]);
  return text;
}

milliseconds Attendance::roll_call_time() const {
  return std::clamp(deadline(), milliseconds(1000), milliseconds(3000));
}

void Attendance::report(std::string_view what, const std::vector<int>& ranks, std::string_view more) const {
  throw Error(ErrorKind::peer,
              format("{}: {} did not arrive within {} s{}", what, ranks.empty() ? "some rank" : name(ranks),
                     static_cast<double>(deadline().count()) / 1000, more),
              ranks.empty()       ? "find out which rank hangs or has ended, and why"
              : ranks.size() == 1 ? "find out on that rank's host why it hangs or has ended"
                                  : "find out on the hosts of these ranks why they hang or have ended");
}

void Attendance::report_missing(std::string_view what, const std::vector<int>& awaited) {
  if (has_ended()) throw Error(ErrorKind::peer, reason());
  const std::vector<int> ranks = absent();
  if (has_ended()) throw Error(ErrorKind::peer, reason());  // a communicator failed while the ranks were asked
  if (!ranks.empty()) report(what, ranks, "");
  report(what, awaited, ", though all ranks answer");
}

void Attendance::report_gone(std::string_view what, int rank) {
  if (has_ended()) throw Error(ErrorKind::peer, reason());
  std::vector<int> others = absent();
  std::erase(others, rank);
  if (!others.empty()) report(what, others, "");
  throw Error(ErrorKind::peer, format("{}: {} has given up", what, name({rank})));
}

void Attendance::end(std::string_view reason) {
  const std::lock_guard lock(mutex_);
  if (has_ended()) return;
  reason_ = reason;
  has_ended_.store(true, std::memory_order_release);
}

int Attendance::number_communicator(const std::vector<int>& world_ranks) {
  const std::lock_guard lock(mutex_);
  return ++communicators_[world_ranks];
}

std::string Attendance::reason() const {
  const std::lock_guard lock(mutex_);
  return reason_;
}

bool PeerWait::goes_on() {
  constexpr milliseconds between_answers{20};
  const auto now = last_ = Clock::now();
  if (!has_begun_) {
    has_begun_ = true;
    start_ = answered_ = now;
  }
  if (now - answered_ >= between_answers) {
    attendance_.answer();
    answered_ = now;
  }
  if (attendance_.has_ended()) return false;
  const milliseconds deadline = attendance_.deadline();  // loaded once, since it changes when the start ends
  return deadline.count() == 0 || now - start_ < deadline + longer_;
}

}  // namespace trainctl
