// Finds the rank that arrives last at the collectives, for which all others wait, and why it is late.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/backend/communicator.h"
#include "core/exec/interfaces/metrics_sink.h"
#include "core/exec/interfaces/step_engine.h"

namespace trainctl {

// How one rank has spent its time in a number of steps, in seconds. Trivially copyable, so that ranks can exchange it.
struct RankSeconds {
  double all = 0;
  double data = 0;           // waiting for batches
  double computing = 0;      // forward and backward pass, update
  double communicating = 0;  // collectives, with the wait for other ranks in them
  std::int64_t steps = 0;
};

// Why a rank is late.
enum class Lateness { data, compute, thermal, network };

struct Straggler {
  int rank = 0;
  Lateness why = Lateness::data;
  double share = 0;       // the part of a step that the other ranks wait for it, 0 to 1
  double own = 0;         // its seconds per step in the stage that is late; 0 for Lateness::network
  double others = 0;      // those of the other ranks, or its own in its fastest comparison so far
  double seconds = 0;     // seconds of a step
  bool is_alone = false;  // whether no other rank does the same work, and `others` are its own seconds
};

// Finds the straggler among ranks that do the same work. The rank that arrives last waits least: `share` is the median
// of what the others wait longer than it. Empty if no rank delays the others by a tenth of a step, or by a fifth for an
// unknown reason. `ranks` holds the ranks' numbers, and `times` the times of all ranks. `throttled`: the ranks whose
// GPU is slowed by its temperature.
std::optional<Straggler> find_straggler(std::span<const int> ranks, std::span<const RankSeconds> times,
                                        std::span<const int> throttled = {});

// Finds a straggler among ranks that do different work, such as the stages of a pipeline. Each rank is compared with
// its own fastest comparison so far: the straggler is the rank whose data reading or computing has become slower by the
// largest share of a step. A slow-down that the other ranks have as well is not counted.
class StragglersOfUnlike {
 public:
  // The parameters are those of find_straggler(). The times of the first call have nothing to be compared with.
  std::optional<Straggler> add(std::span<const int> ranks, std::span<const RankSeconds> times,
                               std::span<const int> throttled = {});

 private:
  std::vector<RankSeconds> fastest_;  // smallest seconds per step of each rank in `ranks`
};

// Decides when a straggler is reported: once three comparisons in a row, or six of a short time, have found the same
// rank and the same reason, and again only when one of them has changed.
class StragglerNews {
 public:
  // Adds a comparison. Returns whether its straggler is to be reported.
  bool add(const std::optional<Straggler>& found, bool is_short = false);
  // Whether a straggler was reported before.
  bool has_reported() const { return has_reported_; }

 private:
  static constexpr int short_comparisons = 6;  // a comparison that is not short counts as two

  std::optional<std::pair<int, Lateness>> last_, reported_;
  int times_ = 0;  // of the comparisons in a row that have found last_
  bool has_reported_ = false;
};

// "rank 3 on host n2 is a straggler: the other ranks wait 18 % of a step for it; its data reading takes 41 ms of 120
// ms"
std::string describe(const Straggler& straggler, const std::vector<std::string>& hosts);

// Watches the steps of a run. About five times a second the ranks exchange their times by one all_gather of a few
// bytes. Rank 0 compares the times of each second and logs stragglers. Until it has logged the first one, it compares
// the times of eight steps if these take 0.15 s, so that a straggler is reported within some 50 steps.
class StragglerWatch {
 public:
  // `hosts`: the host name of each rank. `stages`: the number of each rank's pipeline stage; only ranks of one stage do
  // the same work. A rank that is alone in its stage is compared with its own earlier steps. The communicator and the
  // stream must outlive the object.
  StragglerWatch(Communicator& world, Stream& stream, std::vector<std::string> hosts, std::vector<int> stages);

  // Adds a finished step: the time since the last step or since restart(), the wait for its batch and its phases.
  void add(double waited_seconds, const StepEngine::Phases& phases);
  // Adds the time of communication outside of the engine.
  void add_communication(double seconds) { times_.communicating += seconds; }
  // Adds the time of computing outside of the engine.
  void add_computing(double seconds) { times_.computing += seconds; }
  // Leaves out the time before this call, such as an evaluation.
  void restart();
  // Called after every step by all ranks, with the newest samples of the GPUs. Collective.
  void step(std::int64_t step, std::span<const GpuSample> gpus);

 private:
  struct Row;
  static bool is_full(const RankSeconds& times, bool has_reported);
  std::int64_t interval(bool has_reported) const;
  void compare(std::span<const RankSeconds> times, std::span<const GpuSample> gpus);

  Communicator& world_;
  Stream& stream_;
  std::vector<std::string> hosts_;
  std::vector<std::vector<int>> alike_;  // ranks of each stage that has several
  std::vector<int> unlike_;              // ranks that are alone in their stage
  StragglersOfUnlike of_unlike_;
  std::vector<StragglerNews> news_;  // of each of alike_, then of unlike_
  RankSeconds times_;
  double last_ = 0;             // end of the last step
  std::int64_t next_ = 0;       // step of the next exchange
  bool has_warmed_up_ = false;  // the first steps load kernels and data
};

}  // namespace trainctl
