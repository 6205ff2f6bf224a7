// A program in which every op has a kernel, and every tensor a region and an offset; the executor binds and runs it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/backend/backend.h"
#include "core/program/program.h"

namespace trainctl {

// The regions of a run's memory, by purpose. `gradients` also holds the sums that are reduced together with the
// gradients (losses, metrics, statistics). `gradient_slots` holds more sets of gradients and sums, each with the layout
// of `gradients`. `states` holds the optimizer's states one after the other. `averages` holds moving averages of
// trainable parameters; programs that do not train read them instead of the parameters. `caches` holds the keys and
// values of earlier positions, in programs that generate. `batches` holds batches that wait for their steps, on devices
// that compute in parallel to the host. `slot` is the arena: inputs, activations and workspace.
enum class Region {
  parameters,
  gradients,
  gradient_slots,
  states,
  averages,
  statistics,
  gathered,
  copies,
  scalars,
  caches,
  batches,
  slot
};
inline constexpr int region_count = 12;

// Returns the name of a region as `check` prints it, such as "parameters" or "activations and workspace".
std::string_view name_of(Region region);

// Whether the ranks of the data axis exchange tensors of a region; the region is then allocated by their communicator.
// The arena on a GPU is not allocated in this way, since communicators on GPUs need no memory of their own.
bool is_exchanged(Region region, const ParameterLayout& layout, bool on_host);

// Offsets in regions are multiples of this number of bytes, which cuBLASLt requires for a workspace.
inline constexpr std::int64_t allocation_alignment = 256;

struct PlacedTensor {
  Layout layout;
  Region region = Region::slot;
  std::int64_t offset = 0;  // bytes from the start of the region
};

struct PlacedOp {
  Op op;
  Lowering lowering;            // layouts, workspace and kernel; `bind` is empty for ops that the executor runs itself
  std::int64_t workspace = -1;  // bytes from the start of the slot; -1: none
};

struct PlacedSegment {
  Phase phase = Phase::forward;
  Variant variant = Variant::first;
  std::vector<PlacedOp> ops;
};

// A compute copy of a parameter, in the dtype and layout that kernels need. The op at the same index of the copies
// segment writes it. If `updated` is true, the optimizer's update writes it as well.
struct ComputeCopy {
  TensorId tensor = no_tensor;
  TensorId parameter = no_tensor;
  bool updated = false;
};

struct PlacedProgram {
  // Its tensors include the tensors that lowering adds (compute copies, reordered activations); its list of segments is
  // empty.
  Program program;
  std::vector<PlacedSegment> segments;  // the program's segments with reorders, and the copies segment
  std::vector<PlacedTensor> tensors;    // index: TensorId
  std::vector<ComputeCopy> copies;
  int copies_segment = -1;  // runs after the update, and before a program that has stale copies; -1: none

  const PlacedSegment& segment(int number) const { return segments[static_cast<std::size_t>(number)]; }
  const PlacedOp& op(int segment_number, int number) const {
    return segment(segment_number).ops[static_cast<std::size_t>(number)];
  }
  const PlacedTensor& tensor(TensorId id) const { return tensors[index(id)]; }
};

// The cost of one run of an op.
struct OpWork {
  double flops = 0;
  std::int64_t bytes = 0;  // read and written, in physical layouts; see OpDef::reads() and OpDef::writes()
};
OpWork work_of(const PlacedProgram& program, const Op& op);

}  // namespace trainctl
