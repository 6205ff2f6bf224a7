// Records the values that the ops of one step wrote, with the samples from which the values were computed. The step can
// then be compared with the same step on another mesh.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/exec/engine.h"
#include "core/exec/observe/schedule_follower.h"

namespace trainctl {

// The values that an op of the forward or backward pass wrote on one rank for one micro-batch.
struct TraceRecord {
  double position = 0;  // position of the op in the step; later ops have larger positions, on all stages of a pipeline
  std::string segment;  // "forward" or "backward"
  std::string op;       // "conv2d"
  std::string tensor;   // "conv1/output"
  int write = 0;        // number of earlier writes of the tensor in the segment, for the same micro-batch
  std::vector<std::int64_t> samples;  // numbers of the samples that the values were computed from, in their order
  std::uint64_t hash = 0;             // hash of all values, float32 in logical layout
  std::vector<std::uint64_t>
      sample_hash;            // hash of each sample's values; empty if values do not belong to single samples
  std::vector<float> values;  // only if the tensor was requested
};

// Writes records as text (for each record, a line of JSON and then its values), and reads them back. Throws Error{data}
// if the text is not a trace.
std::string to_text(const std::vector<TraceRecord>& records);
std::vector<TraceRecord> parse_trace(std::string_view text);

// Traces the step that runs while it is set with Engine::set_observer(). Records tensors of real numbers that this rank
// holds whole, except the outputs of collectives.
class StepTrace final : public OpObserver {
 public:
  // If `tensor` is not empty, only the records of this tensor are kept, with values.
  StepTrace(Engine& engine, Backend& backend, const MeshRank& rank, std::string tensor = {})
      : engine_(engine), backend_(backend), rank_(rank), wanted_(std::move(tensor)) {}

  // Sets the samples of this rank's share of the batch, before its step runs.
  void set_samples(const Batch& batch);
  void ran(const PlacedProgram& program, int segment, int op, int slot, double start_seconds,
           double end_seconds) override;

  const std::vector<TraceRecord>& records() const { return records_; }
  // Returns, after the step, the reduced gradients that this rank holds, by the names of the parameters, sorted
  // bytewise. The values are copied to `memory`.
  std::vector<NamedTensor> read_gradients(std::vector<float>& memory);

 private:
  void record(const PlacedProgram& program, int segment, int op, TensorId output, int slot);
  bool is_by_sample(const Tensor& tensor, std::size_t samples) const;
  std::vector<std::int64_t> samples_of(const Program& program, const Tensor& tensor, Phase phase);

  Engine& engine_;
  Backend& backend_;
  MeshRank rank_;
  std::string wanted_;
  int program_ = -1;  // index of the step's program
  std::vector<std::int64_t> samples_;
  ScheduleFollower follower_;
  std::map<std::tuple<std::string, Phase, int>, int> writes_;  // number of writes by tensor, phase and micro-batch
  std::map<std::string, std::vector<std::int64_t>> gradient_samples_;  // samples by gradient that micro-batches add to
  std::vector<std::byte> bytes_;
  std::vector<TraceRecord> records_;
};

}  // namespace trainctl
