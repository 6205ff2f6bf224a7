// Writes the events of a run for TensorBoard: curves of training and validation, the config, distributions of tensors,
// and samples with predictions.
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

// Writes files in the folders `train` and `validation`, so that TensorBoard draws curves of the same name in one chart.
// Curves by step: loss, learning_rate, gradient_norm, samples_per_second, data_wait_share, communication_share and
// gpu/RANK/... of the steps that are due, gradient_norm/LAYER, and the means of an epoch under Keras' names epoch_loss,
// epoch_accuracy, ... `train` also gets the config as a text, the graph of the layers, and histograms. `validation`
// gets samples as pictures "samples/NUMBER CLASS", with a green frame if the prediction is right and a red one
// otherwise, and as a table.
class TensorBoard final : public MetricsSink, public DetailSink {
 public:
  // `config` is YAML, `graph` the result of layer_graph(), `every` the interval of the steps that are written.
  // `class_names` may be empty. start() throws Error{resource} if its file cannot be created; later failures are
  // logged.
  TensorBoard(std::string folder, std::string config, std::string graph, Duration every,
              std::vector<std::string> class_names = {});

  void start(const StartEvent& event) override;
  void step(const StepEvent& event) override;
  void gradient_norms(const GradientNormsEvent& event) override;
  void epoch(const EpochEvent& event) override;
  void checkpoint(const CheckpointEvent&) override {}
  void end(const EndEvent& event) override;
  void histogram(std::int64_t step, const std::string& name, const Histogram& values) override;
  void samples(std::int64_t step, std::span<const JudgedSample> judged) override;

 private:
  EventFile* validation();
  std::string class_name(int number) const;

  std::string folder_, config_, graph_;
  std::vector<std::string> class_names_;
  Due due_;
  std::int64_t first_step_ = 0;
  std::unique_ptr<EventFile> training_, validation_;  // each is created before its first event
  bool warned_ = false;                               // whether the file of validation_ could not be created
};

}  // namespace trainctl
