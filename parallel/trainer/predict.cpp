// One pass of prediction.
#include "parallel/trainer/predict.h"

#include <cstring>
#include <string>

#include "parallel/comm/text.h"

namespace trainctl {
namespace {

// A rank's predictions of its share, as bytes: the number of samples, their weights, their values.
std::string packed(std::int64_t count, const View& weights, const std::vector<std::byte>& values) {
  std::string bytes(reinterpret_cast<const char*>(&count), sizeof count);
  if (count == 0) return bytes;
  bytes.append(static_cast<const char*>(weights.data), static_cast<std::size_t>(weights.bytes()));
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size());
  return bytes;
}

void append_floats(const char* bytes, std::size_t size, std::vector<float>& values) {
  const std::size_t before = values.size();
  values.resize(before + size / sizeof(float));
  std::memcpy(values.data() + before, bytes, size);
}

void unpack(const std::string& bytes, Predictions& all) {
  std::int64_t count = 0;
  std::memcpy(&count, bytes.data(), sizeof count);
  const std::size_t weights = static_cast<std::size_t>(count) * sizeof(float), begin = sizeof count;
  append_floats(bytes.data() + begin, weights, all.weights);
  append_floats(bytes.data() + begin + weights, bytes.size() - begin - weights, all.values);
  all.count += count;
}

}  // namespace

PredictionPrograms prediction_programs(const ProgramSpec& spec, const BatchSource& source, const Sharer& rank) {
  PredictionPrograms result;
  Reader reader;
  for (const std::int64_t batch : {source.batch_size(), source.last_batch_size()}) {
    const std::int64_t samples = share_of(batch, rank).count;
    if (samples == 0 || !result.by_samples.emplace(samples, static_cast<int>(result.programs.size())).second) continue;
    result.programs.push_back(prediction_program(spec, samples, reader));
    reader.throw_if_failed();
  }
  if (result.programs.empty()) result.programs.push_back(prediction_program(spec, 1, reader));  // a rank without any
  reader.throw_if_failed();
  return result;
}

void predict(Engine& engine, const PredictionPrograms& programs, BatchSource& source, Communicator& world,
             Stream& stream, const std::function<bool(const Predictions&)>& take) {
  StepResult result;
  std::vector<std::byte> values;
  std::int64_t next = 0;
  for (bool last = false; !last;) {
    const Batch& batch = source.next();
    last = batch.last_of_epoch;
    if (batch.count > 0) {
      const int program = programs.by_samples.at(batch.count);
      engine.run(program, batch, {}, result);
      engine.read_tensor(program, engine.program(program).program.step.predictions[0], values);
    }
    const std::vector<std::string> parts = gather_texts(packed(batch.count, batch.weights, values), world, stream);
    bool ends = false;
    if (!parts.empty()) {
      Predictions all;
      all.first = next;
      for (const std::string& part : parts) unpack(part, all);
      next += all.count;
      ends = !take(all);
    }
    if (any_rank(ends, world, stream)) return;
  }
}

}  // namespace trainctl
