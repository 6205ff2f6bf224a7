// Measures steps and compares the ranks' times without progress with the limit.
#include "parallel/launch/watch/hang_rule.h"

#include <algorithm>

#include "core/base/median.h"

namespace trainctl {
namespace {

constexpr double least_limit = 10, steps_of_limit = 20, pauses_of_limit = 3;
constexpr std::size_t fewest_steps = 3, most_steps = 64, most_pauses = 16;
constexpr double longest_gap = 2.5;  // seconds between two ticks of a process that runs

bool is_among(const std::vector<std::string>& hosts, const std::string& host) {
  return std::find(hosts.begin(), hosts.end(), host) != hosts.end();
}

// How many times the limit a rank has for what it does; 0: no limit.
double times_limit(const RankView& view) {
  switch (view.training) {
    case Activity::starting:
    case Activity::saving:
    case Activity::ended:
      return 0;
    case Activity::evaluating:
      return 6;
    case Activity::waiting_for_ranks:
      return view.waits ? 1 : 6;
    default:
      return 1;
  }
}

}  // namespace

double automatic_hang_limit(double step_seconds, double pause_seconds) {
  return std::max({least_limit, steps_of_limit * step_seconds, pauses_of_limit * pause_seconds});
}

void HangRule::tick(double now) {
  if (last_tick_ && now - *last_tick_ > longest_gap) forgive(now);
  last_tick_ = now;
}

void HangRule::forgive(double now) {
  for (auto& [number, rank] : ranks_) rank.changed = now;
  last_step_time_.reset();
}

void HangRule::forget(const std::string& host) {
  std::erase_if(ranks_, [&host](const auto& rank) { return rank.second.host == host; });
}

void HangRule::note(const RankView& view, const std::string& host, double now) {
  const auto known = ranks_.find(view.rank);
  const bool progressed = known == ranks_.end() || !view.same_as(known->second.view);
  if (known != ranks_.end() && progressed && times_limit(known->second.view) == 1 && limit()) {
    note_pause({known->second.changed, now});
  }
  WatchedRank& rank = ranks_[view.rank];
  rank.view = view;
  rank.host = host;
  rank.heard = now;
  if (progressed) rank.changed = now;
  if (view.rank != ranks_.begin()->first) return;
  if (view.step_seconds > 0 && step_seconds_.size() < fewest_steps)
    step_seconds_.assign(fewest_steps, view.step_seconds);
  note_step(rank, now);
}

// Ranks that pause at the same time wait for the same event, which counts once. Shorter pauses do not change the limit.
void HangRule::note_pause(const Pause& pause) {
  if (pause.seconds() <= least_limit / pauses_of_limit) return;
  if (pauses_.empty() || pause.begin > pauses_.back().end) {
    pauses_.push_back(pause);
    if (pauses_.size() > most_pauses) pauses_.pop_front();
  } else if (pause.seconds() > pauses_.back().seconds()) {
    pauses_.back() = pause;
  }
}

// The second longest of the last pauses; 0 if there are fewer than two.
double HangRule::usual_pause() const {
  double longest = 0, second = 0;
  for (const Pause& pause : pauses_) {
    second = std::max(second, std::min(longest, pause.seconds()));
    longest = std::max(longest, pause.seconds());
  }
  return second;
}

// If the rank has done several steps between two views, each of them counts, with the same length.
void HangRule::note_step(const WatchedRank& rank, double now) {
  const std::int64_t step = rank.view.step;
  if (step <= last_step_) {
    if (step < last_step_) last_step_time_.reset();
    last_step_ = step;
    return;
  }
  if (last_step_time_ && last_step_ >= 0) {
    const auto steps = static_cast<double>(step - last_step_);
    const std::size_t count = std::min<std::size_t>(static_cast<std::size_t>(steps), fewest_steps);
    step_seconds_.insert(step_seconds_.end(), count, (now - *last_step_time_) / steps);
    while (step_seconds_.size() > most_steps) step_seconds_.pop_front();
  }
  last_step_ = step;
  last_step_time_ = now;
}

std::optional<double> HangRule::limit() const {
  if (step_seconds_.size() < fewest_steps) return {};
  if (const auto* given = std::get_if<Seconds>(&timeout_)) return given->value;
  const double step = median({step_seconds_.begin(), step_seconds_.end()});
  return automatic_hang_limit(step, usual_pause());
}

bool HangRule::hangs(double now, const std::vector<std::string>& silent_hosts) const {
  return judge(now, silent_hosts, true);
}

bool HangRule::is_suspicious(double now, const std::vector<std::string>& silent_hosts) const {
  return judge(now, silent_hosts, false);
}

bool HangRule::judge(double now, const std::vector<std::string>& silent_hosts, bool excuses) const {
  const std::optional<double> most = limit();
  if (!most || ranks_.empty()) return false;
  bool all_still = static_cast<int>(ranks_.size()) == rank_count_, one_waits = false, one_blocks = false;
  bool all_silent = true;
  for (const auto& [number, rank] : ranks_) {
    if (is_among(silent_hosts, rank.host)) {
      one_blocks = true;
      continue;
    }
    all_silent = false;
    const bool still = now - rank.changed >= *most;
    const double times = excuses ? times_limit(rank.view) : 1;
    if (still && (times == 0 || now - rank.changed < times * *most)) return false;
    all_still = all_still && still;
    one_waits = one_waits || (still && rank.view.waits);
    one_blocks = one_blocks || (still && !rank.view.waits);
  }
  return !all_silent && (all_still || (one_waits && one_blocks));
}

std::vector<int> awaited_ranks(const HangRule& rule, double now, const std::vector<int>& stopped,
                               const std::vector<std::string>& silent_hosts) {
  if (!stopped.empty()) return stopped;
  std::vector<int> blocking, absent, slowest, other;
  std::int64_t first = INT64_MAX, last = -1;
  for (const auto& [number, rank] : rule.ranks()) {
    const bool still = now - rank.changed >= rule.limit().value_or(0);
    if (is_among(silent_hosts, rank.host) || (still && !rank.view.waits)) {
      blocking.push_back(number);
      if (!rank.view.in_message) absent.push_back(number);
      if (rank.view.training != Activity::computing) other.push_back(number);
    }
    first = std::min(first, rank.view.step);
    last = std::max(last, rank.view.step);
  }
  // If no rank makes progress, those that compute may wait for a GPU, whose work is not recorded.
  const bool all_block = blocking.size() > 1 && blocking.size() == rule.ranks().size();
  if (all_block && !other.empty()) return other;
  if (!absent.empty()) return absent;
  if (!blocking.empty() || first == last) return blocking;
  for (const auto& [number, rank] : rule.ranks()) {
    if (rank.view.step == first) slowest.push_back(number);
  }
  return slowest;
}

}  // namespace trainctl
