// Records samples and their predictions.
#include "parallel/trainer/sample_watch.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "core/exec/engine.h"
#include "core/tensor/sample_values.h"
#include "parallel/comm/text.h"

namespace trainctl {
namespace {

// Returns the class of a target in any encoding.
int class_of(const View& targets, std::int64_t sample, std::int64_t samples) {
  if (targets.dtype == DType::int32) return targets.as<std::int32_t>()[sample];
  const std::int64_t size = targets.count / samples;
  const float* const values = targets.as<float>() + sample * size;
  if (size == 1) return static_cast<int>(std::lround(values[0]));
  return static_cast<int>(std::max_element(values, values + size) - values);
}

// Returns the probabilities of all classes; a single output is the probability of the second of two classes.
std::vector<float> probabilities_of(const float* outputs, std::size_t count) {
  if (count == 1) return {1 - outputs[0], outputs[0]};
  return {outputs, outputs + count};
}

}  // namespace

SampleWatch::SampleWatch(const BatchSource& source, const BatchDivision& evaluated, const ModelInput& input,
                         std::int64_t max_samples, DetailSink* sink)
    : evaluated_(evaluated), image_shape_(input.sample), sink_(sink) {
  if (evaluated.rank.along(MeshAxis::data) != 0) return;
  const std::int64_t last = source.last_batch_size(), full = source.samples_per_epoch() - last;
  samples_ =
      full / source.batch_size() * share_of(source.batch_size(), evaluated).count + share_of(last, evaluated).count;
  recorded_count_ = std::min(max_samples, samples_);
}

void SampleWatch::begin() {
  passed_ = 0;
  judged_.clear();
  predictions_.clear();
}

bool SampleWatch::select(const Batch& batch) {
  indices_.clear();
  // Of the replica's first n samples, n * recorded_count_ / samples_, rounded up, are recorded.
  const auto recorded_before = [this](std::int64_t n) {
    return samples_ == 0 ? 0 : (n * recorded_count_ + samples_ - 1) / samples_;
  };
  for (std::int64_t i = 0; i < batch.count; ++i, ++passed_) {
    if (recorded_before(passed_ + 1) > recorded_before(passed_)) indices_.push_back(i);
  }
  return !indices_.empty();
}

void SampleWatch::record(Engine& engine, int program, const Batch& batch) {
  const auto* weights = batch.weights.as<float>();
  std::erase_if(indices_, [&](std::int64_t i) { return weights[i] == 0; });  // samples that could not be read
  const Program& described = engine.program(program).program;
  const TensorId output = described.step.predictions.empty() ? no_tensor : described.step.predictions[0];
  if (output != no_tensor) {
    engine.read_tensor(program, output, bytes_);
    const std::int64_t each = described.tensor(output).type.shape.count() / batch.count;
    for (const std::int64_t i : indices_) {
      const std::size_t before = predictions_.size();
      predictions_.resize(before + static_cast<std::size_t>(each));
      std::memcpy(predictions_.data() + before, bytes_.data() + i * each * size_of(DType::float32),
                  static_cast<std::size_t>(each * size_of(DType::float32)));
    }
  }
  if (!has_images()) return;
  const Share share = share_of(batch.global_count, evaluated_);
  for (const std::int64_t i : indices_) {
    judged_.push_back({batch.position.offset + share.at(i),
                       class_of(batch.targets[0], i, batch.count),
                       {},
                       image_shape_,
                       sample_values(batch.inputs[0], i, image_shape_.count())});
  }
}

void SampleWatch::finish(std::int64_t step, Communicator& world, Stream& stream) {
  const Mesh& mesh = evaluated_.rank.mesh;
  const int holder = mesh.rank({.pipeline = mesh.pipeline - 1});  // the rank with the network's last stage
  if (holder != 0 && world.rank() == holder) {
    send_text({reinterpret_cast<const char*>(predictions_.data()), predictions_.size() * sizeof(float)}, 0, world,
              stream);
  }
  if (!has_images()) return;
  if (holder != 0) {
    const std::string bytes = receive_text(holder, world, stream);
    predictions_.resize(bytes.size() / sizeof(float));
    std::memcpy(predictions_.data(), bytes.data(), bytes.size());
  }
  if (judged_.empty() || predictions_.empty()) return;
  const std::size_t each = predictions_.size() / judged_.size();
  for (std::size_t i = 0; i < judged_.size(); ++i) {
    judged_[i].probabilities = probabilities_of(predictions_.data() + i * each, each);
  }
  sink_->samples(step, judged_);
}

}  // namespace trainctl
