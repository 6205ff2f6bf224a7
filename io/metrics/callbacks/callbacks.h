// Runs the commands of `log.callbacks` as a run goes on; a failing one warns and changes nothing.
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
  // `name` of the run, whose directory gets callbacks.log.
  Callbacks(std::vector<Choice> callbacks, const std::string& name, const std::string& run_directory);

  void start(const StartEvent&) override {}
  void step(const StepEvent&) override {}
  void epoch(const EpochEvent& event) override;
  void checkpoint(const CheckpointEvent& event) override;
  void end(const EndEvent& event) override;

 private:
  using Variables = std::map<std::string, std::string>;  // variables without their TRAINCTL_

  void run(const std::string& event, Variables variables);

  std::vector<Choice> callbacks_;
  Variables variables_;  // of the run
  CommandQueue queue_;
};

}  // namespace trainctl
