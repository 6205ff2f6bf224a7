// Progress of a run for people: a live bar on a terminal, or a line every so often, and a summary at the end.
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

// --progress. automatic: a bar where there is a terminal, plain lines elsewhere.
enum class ProgressStyle { automatic, bar, plain, none };

template <>
struct EnumNames<ProgressStyle> {
  static constexpr EnumName<ProgressStyle> names[] = {{ProgressStyle::automatic, "auto"},
                                                      {ProgressStyle::bar, "bar"},
                                                      {ProgressStyle::plain, "plain"},
                                                      {ProgressStyle::none, "none"}};
};

// The terminal that standard error reaches through a supervisor; without one, standard error itself is asked.
struct SupervisedTerminal {
  std::optional<int> columns;  // its width when the run began
  std::string path;            // "/dev/pts/3": is asked for the width now; empty where it is not of this host
};

// A bar on standard error that steps aside for log lines, always as wide as the terminal is then. Redrawn ten times a
// second at most.
class ProgressBar {
 public:
  explicit ProgressBar(const SupervisedTerminal& terminal);
  ~ProgressBar();  // leaves no bar behind
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void draw(const ProgressState& state);
  void clear();

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
};

// Whole lines go through the log (level info), so that they stand in log.txt too and --quiet hides them.
class Progress final : public MetricsSink {
 public:
  // `every`: which steps may have a line in the plain style; LineRate says how many have one.
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
  // Counts over the whole run and since the last line: steps, and the sums that are averaged over them.
  struct Sums {
    std::int64_t steps = 0;
    double inverse_rate = 0;  // seconds per sample
    double wait = 0;

    double rate() const { return inverse_rate > 0 ? static_cast<double>(steps) / inverse_rate : 0; }
  };
  Sums run_, line_;
  double last_line_ = 0;         // seconds of a steady clock
  double seconds_per_step_ = 0;  // smoothed; 0: unknown
};

}  // namespace trainctl
