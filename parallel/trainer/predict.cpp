// Makes a pass of prediction and gathers the results on rank 0.
#include "parallel/trainer/predict.h"

#include <cstring>
#include <string>

#include "core/base/error.h"
#include "core/exec/engine.h"
#include "core/program/build.h"
#include "parallel/comm/text.h"

namespace trainctl {
namespace {

// Encodes a rank's predictions of its share as bytes: the number of samples, their weights, their values by output.
std::string packed(std::int64_t count, const View& weights, const std::vector<std::vector<std::byte>>& values) {
  std::string bytes(reinterpret_cast<const char*>(&count), sizeof count);
  if (count == 0) return bytes;
  bytes.append(static_cast<const char*>(weights.data), static_cast<std::size_t>(weights.bytes()));
  for (const auto& output : values) bytes.append(reinterpret_cast<const char*>(output.data()), output.size());
  return bytes;
}

void append_floats(const char* bytes, std::size_t count, std::vector<float>& values) {
  const std::size_t before = values.size();
  values.resize(before + count);
  std::memcpy(values.data() + before, bytes, count * sizeof(float));
}

// Appends packed predictions to `all`. `values_per_sample`: the number of values of a sample, by output.
void unpack(const std::string& bytes, const std::vector<std::size_t>& values_per_sample, Predictions& all) {
  std::int64_t samples = 0;
  std::memcpy(&samples, bytes.data(), sizeof samples);
  const char* next = bytes.data() + sizeof samples;
  const auto unpack_floats = [&](std::size_t of_sample, std::vector<float>& to) {
    const std::size_t count = static_cast<std::size_t>(samples) * of_sample;
    append_floats(next, count, to);
    next += count * sizeof(float);
  };
  unpack_floats(1, all.weights);
  for (std::size_t output = 0; output < values_per_sample.size(); ++output)
    unpack_floats(values_per_sample[output], all.values[output]);
  all.count += samples;
}

// Returns the number of values of a sample, by output.
std::vector<std::size_t> count_values_per_sample(const Program& program) {
  std::vector<std::size_t> values_per_sample;
  for (const TensorId id : program.step.predictions) {
    values_per_sample.push_back(static_cast<std::size_t>(program.tensor(id).type.shape.without_front().count()));
  }
  return values_per_sample;
}

}  // namespace

PredictionPrograms prediction_programs(const ProgramSpec& spec, const BatchSource& source,
                                       const BatchDivision& division) {
  PredictionPrograms result;
  Reader reader;
  for (const std::int64_t batch : {source.batch_size(), source.last_batch_size()}) {
    const std::int64_t samples = share_of(batch, division).count;
    if (samples == 0 || !result.by_samples.emplace(samples, static_cast<int>(result.programs.size())).second) continue;
    result.programs.push_back(prediction_program(spec, samples, reader));
    reader.throw_if_failed();
  }
  if (result.programs.empty())
    result.programs.push_back(prediction_program(spec, 1, reader));  // a rank without samples
  reader.throw_if_failed();
  return result;
}

std::span<const float> Predictions::of(std::size_t output, std::int64_t i) const {
  const std::size_t values_per_sample = values[output].size() / static_cast<std::size_t>(count);
  return {values[output].data() + static_cast<std::size_t>(i) * values_per_sample, values_per_sample};
}

void predict(Engine& engine, const PredictionPrograms& programs, BatchSource& source, Communicator& world,
             Stream& stream, const std::function<bool(const Predictions&)>& take) {
  StepResult result;
  const std::vector<std::size_t> values_per_sample = count_values_per_sample(engine.program(0).program);
  std::vector<std::vector<std::byte>> values(values_per_sample.size());
  std::int64_t next = 0;
  for (bool last = false; !last;) {
    const Batch& batch = source.next();
    last = batch.last_of_epoch;
    if (batch.count > 0) {
      const int program = programs.by_samples.at(batch.count);
      engine.run(program, batch, {}, result);
      for (std::size_t output = 0; output < values_per_sample.size(); ++output) {
        const TensorId id = engine.program(program).program.step.predictions[output];
        require(engine.program(program).tensor(id).layout.format.empty(),
                "predictions are not in their logical layout");
        engine.read_tensor(program, id, values[output]);
      }
    }
    const std::vector<std::string> of_ranks = gather_texts(packed(batch.count, batch.weights, values), world, stream);
    bool ends = false;
    if (!of_ranks.empty()) {
      Predictions all;
      all.first = next;
      all.values.resize(values_per_sample.size());
      for (const std::string& bytes : of_ranks) unpack(bytes, values_per_sample, all);
      next += all.count;
      ends = !take(all);
    }
    if (any_rank(ends, world, stream)) return;
  }
}

}  // namespace trainctl
