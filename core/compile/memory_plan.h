// How many bytes each region of a run takes: known before anything is allocated.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/compile/placed_program.h"

namespace trainctl {

// Where scalars and batch lie side by side on their way to a step, by the numbers of step_inputs.h: the inputs, which
// may come from memory of their own, behind the rest.
struct StagingPlan {
  std::vector<std::int64_t> offsets;
  std::int64_t bytes = 0;
};

// What memory depends on of a device.
struct DeviceTraits {
  bool on_host = true;        // its memory is the host's
  bool asynchronous = false;  // it computes beside the host, so that batches wait in its memory for their steps

  // With how many buffers steps are under way: two where one is prepared while another runs.
  int step_buffers() const { return asynchronous ? 2 : 1; }
};
inline DeviceTraits traits_of(const Backend& backend) { return {backend.on_host(), backend.asynchronous()}; }

// A line of what a rank takes.
struct MemoryLine {
  std::string_view name;
  std::int64_t bytes = 0;
  bool depends_on_kernels = false;  // other kernels would need other compute copies or another arena
};

struct MemoryPlan {
  std::array<std::int64_t, region_count> bytes{};  // of the slot region: all slots together
  int slots = 1;
  std::int64_t slot_bytes = 0;
  StagingPlan staging;          // of one of a step's buffers; of the scalars alone where a batch is read where it lies
  std::int64_t sums = 0;        // bytes from the start of the gradient region to the sums behind the gradients
  std::int64_t prefetched = 0;  // bytes of host memory for the batches that the sources of batches prepare ahead
  bool on_host = true;          // the regions lie in host memory, too

  std::int64_t of(Region region) const { return bytes[static_cast<std::size_t>(region)]; }
  // Of the device's memory: with what is prefetched where that is the host's.
  std::int64_t total() const;
  // Every region, then the prefetched batches, by the names that users read.
  std::vector<MemoryLine> lines() const;
};

// What the programs need at least, before anything is known of kernels: the flat regions, and as arena the tensors of
// the op that has most of them.
MemoryPlan least_memory(const std::vector<Program>& programs);

// Gives every tensor and workspace its place. The programs share parameters, gradients, states, statistics, scalars,
// compute copies of equal layout, and the arena. Where none of them trains there are no gradients and no states.
MemoryPlan place_tensors(std::vector<PlacedProgram>& programs, const DeviceTraits& device);

}  // namespace trainctl
