// The events of a run as TensorBoard shows them: curves of training and validation, the config, distributions of
// tensors, samples with predictions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/exec/interfaces/detail_sink.h"
#include "core/exec/interfaces/metrics_sink.h"
#include "core/spec/units.h"
#include "io/metrics/due.h"
#include "io/metrics/tensorboard/event_file.h"

namespace trainctl {

// Two files in folders `train` and `validation`, so that TensorBoard draws the curves of one name over each other. By
// steps done: loss, learning_rate, gradient_norm, samples_per_second, data_wait_share, communication_share and
// gpu/RANK/... of the steps that are due; and as epoch_loss, epoch_accuracy, ... (Keras' names) the means of an epoch.
// The config is a text, and the graph is that of the layers. Histograms go to `train`; samples go to `validation`, as
// pictures "samples/NUMBER CLASS" in a frame that is green where the prediction is right and else red, and as a table.
class TensorBoard final : public MetricsSink, public DetailSink {
 public:
  // `config` is YAML, `graph` that of layer_graph(); `every`: which steps are written. Throws as EventFile, now and
  // later. `class_names` may be empty.
  TensorBoard(std::string folder, std::string config, std::string graph, Duration every,
              std::vector<std::string> class_names = {});

  void start(const StartEvent& event) override;
  void step(const StepEvent& event) override;
  void epoch(const EpochEvent& event) override;
  void checkpoint(const CheckpointEvent&) override {}
  void end(const EndEvent&) override {}
  void histogram(std::int64_t step, const std::string& name, const Histogram& values) override;
  void samples(std::int64_t step, std::span<const JudgedSample> judged) override;

 private:
  EventFile& validation();
  std::string class_name(int number) const;

  std::string folder_, config_, graph_;
  std::vector<std::string> class_names_;
  Due due_;
  std::int64_t first_step_ = 0;
  std::unique_ptr<EventFile> training_, validation_;  // from the first event of their kind on
};

}  // namespace trainctl
