// The events of a run as TensorBoard shows them: curves of training and validation, the config.
#pragma once

#include <memory>
#include <string>

#include "core/exec/interfaces/metrics_sink.h"
#include "core/spec/units.h"
#include "io/metrics/due.h"
#include "io/metrics/tensorboard/event_file.h"

namespace trainctl {

// Two files in folders `train` and `validation`, so that TensorBoard draws the curves of one name over each other. By
// steps done: loss, learning_rate, gradient_norm, samples_per_second, data_wait_share, communication_share and
// gpu/RANK/... of the steps that are due; and as epoch_loss, epoch_accuracy, ... (Keras' names) the means of an epoch. The config is a text, and
// the graph is that of the layers.
class TensorBoard final : public MetricsSink {
 public:
  // `config` is YAML, `graph` that of layer_graph(); `every`: which steps are written. Throws as EventFile, now and
  // later.
  TensorBoard(std::string folder, std::string config, std::string graph, Duration every);

  void start(const StartEvent& event) override;
  void step(const StepEvent& event) override;
  void epoch(const EpochEvent& event) override;
  void checkpoint(const CheckpointEvent&) override {}
  void end(const EndEvent&) override {}

 private:
  std::string folder_, config_, graph_;
  Due due_;
  std::int64_t first_step_ = 0;
  std::unique_ptr<EventFile> training_, validation_;  // from the first event of their kind on
};

}  // namespace trainctl
