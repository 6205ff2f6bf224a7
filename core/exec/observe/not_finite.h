// Searches for the first tensor that holds a NaN or Inf.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "core/exec/engine.h"

namespace trainctl {

// Searches a step op by op: set it with Engine::set_observer and repeat the step.
class NotFiniteSearch final : public OpObserver {
 public:
  // `rank`: the rank that runs the program, which determines the stage of a pipeline.
  NotFiniteSearch(Engine& engine, int program, const MeshRank& rank)
      : engine_(engine), program_(program), rank_(rank) {}

  void ran(const PlacedProgram& program, int segment, int op, int slot, double start_seconds,
           double end_seconds) override;
  // The name of the tensor and of the op that wrote it, which is not a receive; "" if all values are finite.
  const std::string& found() const { return found_; }
  // The op's position in the step, by which ranks compare their findings; infinite if all values are finite.
  double position() const { return position_; }

 private:
  // The kind of the first op of a row group that computes a NaN or Inf, which may be in no tensor of the program; "" if
  // there is none. The ops run again, one by one, on the group's inputs.
  std::string kind_within(const Op& group, const PlacedProgram& program, int slot);

  Engine& engine_;
  int program_;
  MeshRank rank_;
  std::vector<std::byte> bytes_;
  std::string found_;
  double position_ = std::numeric_limits<double>::infinity();
};

}  // namespace trainctl
