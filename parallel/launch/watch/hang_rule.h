// Decides when ranks hang: a pure function of what they do and of the time.
//
// The rule: ranks hang if no rank has made progress for the limit, or if a rank has made none, without waiting, while
// another has waited for others as long. The limit is cluster.hang_timeout. `auto` is the largest of 10 s, 20 times the
// median time between steps, and 3 times the second longest of the last long pauses after which ranks went on, so that
// a single one has no effect. It begins after the first steps. A rank that evaluates, or works for itself between
// steps, has six times the limit. While a rank starts or saves, no rank hangs: cluster.start_timeout and
// cluster.timeout limit these times. A rank whose process is stopped has no such excuse.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "parallel/launch/options.h"
#include "parallel/launch/watch/rank_view.h"

namespace trainctl {

// What is known of a rank. Times are in seconds of the supervisor's clock.
struct WatchedRank {
  RankView view;
  std::string host;
  double changed = 0;  // time when it last made progress
  double heard = 0;    // time when its view arrived

  // For how long the rank has done the same.
  double seconds(double now) const { return view.seconds + (now - heard); }
};

// The limit of `auto` for steps and usual pauses of these lengths, in seconds.
double automatic_hang_limit(double step_seconds, double pause_seconds = 0);

class HangRule {
 public:
  // `timeout`: cluster.hang_timeout; must not be `none`. `ranks`: number of the attempt's ranks.
  HangRule(const HangTimeout& timeout, int ranks) : timeout_(timeout), rank_count_(ranks) {}

  // Called at least every two seconds: after a longer time, this process was suspended, perhaps with the whole machine.
  // All ranks then get the full limit again.
  void tick(double now);

  // Records a rank's view, which arrived from a host.
  void note(const RankView& view, const std::string& host, double now);

  // Returns whether ranks hang. `silent_hosts`: hosts whose agents have not answered for the limit; what their ranks do
  // is unknown.
  bool hangs(double now, const std::vector<std::string>& silent_hosts = {}) const;

  // Returns whether they would hang if no activity were an excuse. Then the processes of the ranks are looked at.
  bool is_suspicious(double now, const std::vector<std::string>& silent_hosts = {}) const;

  // Forgets the ranks of a host that is no longer watched.
  void forget(const std::string& host);

  // Gives all ranks the full limit again.
  void forgive(double now);

  // The time without progress after which ranks hang; empty before the first steps.
  std::optional<double> limit() const;

  const std::map<int, WatchedRank>& ranks() const { return ranks_; }

 private:
  // A time in which a rank, or several, made no progress.
  struct Pause {
    double begin = 0, end = 0;
    double seconds() const { return end - begin; }
  };

  void note_step(const WatchedRank& rank, double now);
  void note_pause(const Pause& pause);
  double usual_pause() const;
  bool judge(double now, const std::vector<std::string>& silent_hosts, bool excuses) const;

  HangTimeout timeout_;
  int rank_count_;
  std::map<int, WatchedRank> ranks_;
  std::optional<double> last_tick_;
  std::deque<double> step_seconds_;  // times between the last steps of the first rank
  std::int64_t last_step_ = -1;      // of the first rank
  std::optional<double> last_step_time_;
  std::deque<Pause> pauses_;  // the last long ones after which ranks went on; no two overlap
};

// Returns the ranks that others wait for in a hang, by the first rule that names any:
// 1. the `stopped` ranks;
// 2. ranks that have made no progress for the limit without waiting for others, and ranks on silent hosts. If these are
//    all ranks, those that do not compute; otherwise those without a collective or message under way, if there are any;
// 3. the ranks in the earliest step.
// Empty if all ranks wait for each other in the same step.
std::vector<int> awaited_ranks(const HangRule& rule, double now, const std::vector<int>& stopped,
                               const std::vector<std::string>& silent_hosts);

}  // namespace trainctl
