// Runs the commands of `log.callbacks` during a run. A command that fails is logged as a warning; the run continues.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/exec/interfaces/metrics_sink.h"
#include "io/metrics/callbacks/command_queue.h"
#include "io/metrics/callbacks/options.h"

namespace trainctl {

class Callbacks final : public MetricsSink {
 public:
  // `name` is the run's name. The output of commands goes to callbacks.log in `run_directory`.
  Callbacks(std::vector<Choice> callbacks, const std::string& name, const std::string& run_directory);

  void start(const StartEvent&) override {}
  void step(const StepEvent&) override {}
  void epoch(const EpochEvent& event) override;
  void checkpoint(const CheckpointEvent& event) override;
  void end(const EndEvent& event) override;

 private:
  using Variables = std::map<std::string, std::string>;  // key: name without the prefix TRAINCTL_

  void run(const std::string& event, Variables variables);

  std::vector<Choice> callbacks_;
  Variables variables_;  // variables that all events have
  CommandQueue queue_;
};

}  // namespace trainctl
