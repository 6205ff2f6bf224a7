// Shows the progress of a run to people: a live bar on a terminal, otherwise lines at intervals, and a summary at the
// end.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/exec/interfaces/metrics_sink.h"
#include "core/spec/units.h"
#include "core/spec/values.h"
#include "io/metrics/due.h"
#include "io/metrics/progress_text.h"

namespace trainctl {

// Values of --progress. automatic: a bar on a terminal, plain lines elsewhere.
enum class ProgressStyle { automatic, bar, plain, none };

template <>
struct EnumNames<ProgressStyle> {
  static constexpr EnumName<ProgressStyle> names[] = {{ProgressStyle::automatic, "auto"},
                                                      {ProgressStyle::bar, "bar"},
                                                      {ProgressStyle::plain, "plain"},
                                                      {ProgressStyle::none, "none"}};
};

// The terminal to which a supervisor forwards standard error. Without a supervisor both members are empty, and standard
// error itself is used.
struct SupervisedTerminal {
  std::optional<int> columns;  // width of the terminal when the run began
  std::string path;            // "/dev/pts/3", to query its present width; empty if it is on another host
};

// A bar on standard error with the present width of the terminal. It is erased before log lines and drawn again after
// them, at most ten times a second.
class ProgressBar {
 public:
  explicit ProgressBar(const SupervisedTerminal& terminal);
  ~ProgressBar();  // erases the bar
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void draw(const ProgressState& state);
  void clear();

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
};

// Lines other than the bar are written to the log (level info), so that they are in log.txt, too, and --quiet hides
// them.
class Progress final : public MetricsSink {
 public:
  // `every` is the interval of steps that may have a line in the plain style; LineRate limits their number.
  Progress(ProgressStyle style, Duration every, const SupervisedTerminal& terminal = {});
  ~Progress() override;

  void start(const StartEvent& event) override;
  void step(const StepEvent& event) override;
  void epoch(const EpochEvent& event) override;
  void checkpoint(const CheckpointEvent& event) override;
  void end(const EndEvent& event) override;

 private:
  ProgressState state_since_last_line(const StepEvent& event, double now);

  ProgressStyle style_;
  Due due_;
  LineRate rate_;
  std::unique_ptr<ProgressBar> bar_;
  StartEvent start_;
  std::string last_checkpoint_;
  // The number of steps, and sums over them for averages: of the whole run and since the last line.
  struct Sums {
    std::int64_t steps = 0;
    double inverse_rate = 0;  // sum of seconds per sample
    double wait = 0;

    double rate() const { return inverse_rate > 0 ? static_cast<double>(steps) / inverse_rate : 0; }
  };
  Sums run_, line_;
  double last_line_ = 0;         // seconds of a steady clock
  double seconds_per_step_ = 0;  // smoothed; 0: unknown
};

}  // namespace trainctl
