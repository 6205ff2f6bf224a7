// Decides after which steps checkpoints are due: after a fixed number of steps, or by the formula of Young and Daly.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

namespace trainctl {

class Communicator;
class Stream;

// Returns the time of training between two saves that loses the least time, in seconds: saves cost time, and a failure
// loses the time since the last save. `cost`: seconds for which a save stops training; `failures`: mean time between
// failures of the run in seconds. This is the higher-order solution of J. T. Daly (Future Generation Computer Systems
// 22, 2006, equation 37); its first term is that of J. W. Young (CACM 17, 1974), the square root of 2 * cost *
// failures.
double best_save_interval(double cost, double failures);

// What saving has cost a rank.
struct SaveCost {
  double stall = 0;  // seconds for which the last save stopped training
  double write = 0;  // seconds until a checkpoint was whole; 0: unknown
};

class CheckpointInterval {
 public:
  // The number of steps before the first save of a run, whose cost and speed are not known.
  static constexpr std::int64_t first_steps = 10;
  // No interval is shorter than this time in seconds, nor than `write_times` times the time of writing.
  static constexpr double shortest = 10, write_times = 2;

  // Returns an interval in seconds, or the shortest one that is allowed if checkpoints take `write` seconds to write.
  static double bounded(double seconds, double write) { return std::max({seconds, shortest, write_times * write}); }

  // `every`: number of steps; 0: never, or, if `failures` is not 0, so that the run loses the least time at this mean
  // time between failures of the run, in seconds.
  explicit CheckpointInterval(std::int64_t every, double failures = 0) : every_(every), failures_(failures) {}

  // Called before the first step, with the number of steps done and the time by seconds_now().
  void begin(std::int64_t step, double now);
  // Returns the next step count after `step` after which a checkpoint is due.
  std::int64_t next(std::int64_t step) const;
  bool is_due(std::int64_t before, std::int64_t step) const;
  // Called on all ranks when a save is due. When the interval was computed, the last checkpoint may still have been
  // unwritten, as the first one of a run always is. With a computed interval, the ranks therefore agree on the longest
  // time that it has taken by now. Returns true, and the save is due later, if the last save was less than
  // `write_times` times this time ago.
  bool puts_off(std::int64_t step, double now, SaveCost cost, Communicator& world, Stream& stream);
  // Called on all ranks after each save. With a computed interval, the ranks agree on the largest cost and the longest
  // time of a step since the last call, which includes evaluations. Returns a line for the log if the interval was
  // computed for the first time, or is twice or half as long as in the last line; "" otherwise.
  std::string note_save(std::int64_t step, double now, SaveCost cost, Communicator& world, Stream& stream);

 private:
  struct Agreed {
    double stall, write, step;  // seconds; the largest of all ranks
  };
  Agreed agree(std::int64_t step, double now, SaveCost cost, Communicator& world, Stream& stream) const;

  std::int64_t every_;
  double failures_;
  std::int64_t due_ = 0;  // with a computed interval: the step after which the next checkpoint is due
  std::int64_t last_step_ = 0;
  double last_time_ = 0;
  double told_ = 0;  // the interval in the last line of the log, in seconds
};

}  // namespace trainctl
