// Searches for the first tensor that holds a NaN or Inf.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json_fwd.h"
#include "core/exec/engine.h"
#include "core/exec/observe/schedule_follower.h"

namespace trainctl {

struct NotFiniteTensor {
  std::string name;   // of a bucket, that of the parameter in it; "" if all values are finite
  std::string words;  // what the tensor is for the user: "the output of layer 'conv1'"
  std::string op;     // kind of the op that wrote it, which is not a receive: "conv2d"
  std::string phase;  // "forward", "backward" or "update"
  // The number in the data set of the first sample whose values are not finite or, if the tensor has no values of
  // single samples (a loss, say), of the sample with the largest value that the op has read.
  std::optional<std::int64_t> sample = {};
  bool sample_was_read = false;  // the latter
  // Whether the value is no tensor of the program, but lies between the ops of the row group of this name.
  bool is_within = false;
  int rank = -1;  // the rank that found it; -1: a single rank
};

// Returns a text such as "the output of layer 'conv1' ('conv1/output'), written by conv2d in forward, for sample 131 of
// the data (rank 1)"; "" if all values are finite.
std::string to_text(const NotFiniteTensor& tensor);

// The finding as a JSON object with the members as keys ("tensor" instead of "name"), and the finding in such an
// object.
Json to_json(const NotFiniteTensor& tensor);
NotFiniteTensor not_finite_tensor(const Json& json);

// Searches a step op by op: set it with Engine::set_observer and repeat the step.
class NotFiniteSearch final : public OpObserver {
 public:
  // `rank`: the rank that runs the program, which determines the stage of a pipeline. `samples`: the numbers of the
  // samples of this rank's share of the batch; empty: unknown.
  NotFiniteSearch(Engine& engine, int program, const MeshRank& rank, std::vector<std::int64_t> samples = {})
      : engine_(engine), program_(program), rank_(rank), samples_(std::move(samples)) {}

  void ran(const PlacedProgram& program, int segment, int op, int slot, double start_seconds,
           double end_seconds) override;
  const NotFiniteTensor& found() const { return found_; }
  // The op's position in the step, by which ranks compare their findings; infinite if all values are finite.
  double position() const { return position_; }

 private:
  // The kind of the first op of a row group that computes a NaN or Inf, which may be in no tensor of the program; "" if
  // there is none. The ops run again, one by one, on the group's inputs.
  std::string kind_within(const Op& group, const PlacedProgram& program, int slot);
  // Notes phase and position of an op that has written a value that is not finite.
  void note_place(const PlacedProgram& program, int segment, int op);

  struct Rows {
    const std::int64_t* samples = nullptr;
    std::size_t count = 0;  // number of samples
    std::size_t bytes = 0;  // bytes of the values of a sample
  };
  std::optional<Rows> rows_of(const Program& program, const Tensor& tensor) const;
  std::optional<std::int64_t> sample_of(const Program& program, const Tensor& tensor, DType dtype) const;
  std::optional<std::int64_t> largest_sample_read(const PlacedProgram& program, const Op& op, int slot);

  Engine& engine_;
  int program_;
  MeshRank rank_;
  std::vector<std::int64_t> samples_;
  ScheduleFollower follower_;
  std::vector<std::byte> bytes_;  // values of the tensor that was read last
  NotFiniteTensor found_;
  double position_ = std::numeric_limits<double>::infinity();
};

}  // namespace trainctl
