// A program whose every op has a kernel and whose every tensor has a place: what the executor binds and runs.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/backend/backend.h"
#include "core/program/program.h"

namespace trainctl {

// What memory is for. States of all kinds share one region, one behind the other. The slot is the arena: inputs,
// activations and workspace. Batches wait in theirs for their steps, on devices that compute beside the host.
enum class Region { parameters, gradients, states, statistics, copies, scalars, batches, slot };
inline constexpr int region_count = 8;

// "parameters", "gradients", "arena", ...: as `check` prints them.
std::string_view name_of(Region region);

// Places in regions begin at multiples of so many bytes: what cuBLASLt wants of a workspace.
inline constexpr std::int64_t place_alignment = 256;

struct PlacedTensor {
  Layout layout;
  Region region = Region::slot;
  std::int64_t offset = 0;  // bytes from the start of the region
};

struct PlacedOp {
  Op op;
  Lowering lowering;            // layouts, workspace and kernel; without bind for ops that the executor runs itself
  std::int64_t workspace = -1;  // bytes from the start of the slot; -1: none
};

struct PlacedSegment {
  Phase phase = Phase::forward;
  Variant variant = Variant::first;
  std::vector<PlacedOp> ops;
};

// A compute copy of a parameter, in the dtype and layout that kernels want; written by the op of the copies segment
// that has the same number, and by the update itself where `updated`.
struct ComputeCopy {
  TensorId tensor = no_tensor;
  TensorId parameter = no_tensor;
  bool updated = false;
};

struct PlacedProgram {
  Program program;  // with the tensors that lowering added (compute copies, reordered activations); its segments moved
  std::vector<PlacedSegment> segments;  // with the reorders, and the copies segment
  std::vector<PlacedTensor> tensors;    // as those of the program
  std::vector<ComputeCopy> copies;
  int copies_segment = -1;  // runs after the update, and before a program whose copies are stale

  const PlacedSegment& segment(int number) const { return segments[static_cast<std::size_t>(number)]; }
  const PlacedOp& op(int segment_number, int number) const {
    return segment(segment_number).ops[static_cast<std::size_t>(number)];
  }
  const PlacedTensor& tensor(TensorId id) const { return tensors[static_cast<std::size_t>(id)]; }
};

// What an op does in one run.
struct OpWork {
  double flops = 0;
  std::int64_t bytes = 0;  // read and written, each tensor counted once, in their layouts
};
OpWork work_of(const PlacedProgram& program, const Op& op);

}  // namespace trainctl
