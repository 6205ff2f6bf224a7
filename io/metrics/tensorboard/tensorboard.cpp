// The curves of a run.
#include "io/metrics/tensorboard/tensorboard.h"

#include <chrono>
#include <cmath>
#include <map>
#include <utility>

#include "core/base/format.h"

namespace trainctl {
namespace {

using Curves = std::map<std::string, double>;

// The means of an epoch under Keras' names.
Curves of_epoch(const std::map<std::string, double>& values) {
  Curves curves;
  for (const auto& [name, value] : values) curves["epoch_" + name] = value;
  return curves;
}

void add_gpu(const GpuSample& sample, Curves& curves) {
  const GpuReading& reading = sample.reading;
  for (const auto& [name, value] :
       {std::pair("utilization", reading.utilization), std::pair("memory_bytes", reading.memory_bytes),
        std::pair("temperature", reading.temperature), std::pair("power_watts", reading.power_watts)}) {
    if (!std::isnan(value)) curves[format("gpu/{}/{}", sample.rank, name)] = value;
  }
}

}  // namespace

TensorBoard::TensorBoard(std::string folder, std::string config, std::string graph, Duration every)
    : folder_(std::move(folder)), config_(std::move(config)), graph_(std::move(graph)), due_(every) {}

void TensorBoard::start(const StartEvent& event) {
  first_step_ = event.first_step;
  training_ = std::make_unique<EventFile>(folder_ + "/train", first_step_);
  training_->graph(first_step_, graph_);
  training_->text(first_step_, "config", "```\n" + config_ + "```\n");
}

void TensorBoard::step(const StepEvent& event) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  if (!due_(event, std::chrono::duration<double>(now).count())) return;
  Curves curves{{"loss", event.loss},
                {"learning_rate", event.learning_rate},
                {"gradient_norm", event.gradient_norm},
                {"samples_per_second", event.samples_per_second},
                {"data_wait_share", event.data_wait_share},
                {"communication_share", event.shares.communication}};
  for (const GpuSample& sample : event.gpus) add_gpu(sample, curves);
  training_->scalars(event.step, curves);
}

void TensorBoard::epoch(const EpochEvent& event) {
  training_->scalars(event.step, of_epoch(event.train));
  if (event.validation.empty()) return;
  if (!validation_) validation_ = std::make_unique<EventFile>(folder_ + "/validation", first_step_);
  validation_->scalars(event.step, of_epoch(event.validation));
}

}  // namespace trainctl
