// Writes the curves of a run for TensorBoard.
#include "io/metrics/tensorboard/tensorboard.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <map>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"

namespace trainctl {
namespace {

using Curves = std::map<std::string, double>;

// Returns the means of an epoch under Keras' names.
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

// Escapes a text for a cell of a Markdown table.
std::string in_table(const std::string& text) {
  std::string cell;
  for (const char c : text) cell += c == '|' ? std::string("\\|") : std::string(1, c);
  return cell;
}

Picture with_frame(const Picture& inner, bool is_right) {
  constexpr std::int64_t frame = 3;
  const std::array<std::uint8_t, 3> color =
      is_right ? std::array<std::uint8_t, 3>{46, 160, 67} : std::array<std::uint8_t, 3>{218, 54, 51};
  Picture whole{inner.height + 2 * frame, inner.width + 2 * frame, {}};
  for (std::int64_t pixel = 0; pixel < whole.height * whole.width; ++pixel) {
    whole.rgb.insert(whole.rgb.end(), color.begin(), color.end());
  }
  for (std::int64_t row = 0; row < inner.height; ++row) {
    std::copy_n(inner.at(row, 0), inner.width * 3, whole.at(row + frame, frame));
  }
  return whole;
}

}  // namespace

TensorBoard::TensorBoard(std::string folder, std::string config, std::string graph, Duration every,
                         std::vector<std::string> class_names)
    : folder_(std::move(folder)),
      config_(std::move(config)),
      graph_(std::move(graph)),
      class_names_(std::move(class_names)),
      due_(every) {}

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

void TensorBoard::gradient_norms(const GradientNormsEvent& event) {
  Curves curves;
  for (const auto& [layer, norm] : event.norms) curves["gradient_norm/" + layer] = norm;
  training_->scalars(event.step, curves);
}

void TensorBoard::epoch(const EpochEvent& event) {
  training_->scalars(event.step, of_epoch(event.train));
  if (event.validation.empty()) return;
  if (EventFile* const file = validation()) file->scalars(event.step, of_epoch(event.validation));
}

void TensorBoard::end(const EndEvent&) {
  for (EventFile* const file : {training_.get(), validation_.get()}) {
    if (file != nullptr) file->finish();
  }
}

// Returns the file of the validation's events; null while it cannot be created, such as on a full disk.
EventFile* TensorBoard::validation() {
  if (validation_) return validation_.get();
  try {
    validation_ = std::make_unique<EventFile>(folder_ + "/validation", first_step_);
  } catch (const Error& error) {
    if (!std::exchange(warned_, true)) {
      log::warning(format("TensorBoard shows no validation until its file can be written: {}", error.what()));
    }
  }
  return validation_.get();
}

std::string TensorBoard::class_name(int number) const {
  const auto index = static_cast<std::size_t>(number);
  return index < class_names_.size() ? class_names_[index] : std::to_string(number);
}

void TensorBoard::histogram(std::int64_t step, const std::string& name, const Histogram& values) {
  training_->histogram(step, name, values);
}

void TensorBoard::samples(std::int64_t step, std::span<const JudgedSample> judged) {
  EventFile* const file = validation();
  if (file == nullptr) return;
  std::string table = "| sample | label | prediction | probability |\n|---|---|---|---|\n";
  for (const JudgedSample& sample : judged) {
    const auto likeliest = std::max_element(sample.probabilities.begin(), sample.probabilities.end());
    const auto found = static_cast<int>(likeliest - sample.probabilities.begin());
    const std::string label = class_name(sample.label);
    table +=
        format("| {} | {} | {} | {:.4f} |\n", sample.number, in_table(label), in_table(class_name(found)), *likeliest);
    const Picture picture = with_frame(picture_of(sample.pixels, sample.shape), found == sample.label);
    file->picture(step, format("samples/{} {}", sample.number, label), picture);
  }
  file->text(step, "samples", table);
}

}  // namespace trainctl
