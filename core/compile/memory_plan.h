// The bytes of each region of a run, known before anything is allocated.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/compile/placed_program.h"

namespace trainctl {

// The offsets of the scalars and of a batch's tensors in a step's staging buffer, by the numbers in step_inputs.h. The
// inputs come last, since they may be copied from memory of their own instead.
struct StagingPlan {
  std::vector<std::int64_t> offsets;
  std::int64_t bytes = 0;
};

// The properties of a device that memory depends on.
struct DeviceTraits {
  bool on_host = true;        // whether its memory is the host's memory
  bool asynchronous = false;  // whether it computes in parallel to the host: batches wait in its memory
  int compute_streams = 1;    // Backend::compute_streams()

  // The number of steps that have buffers at the same time: two if one step is prepared while another runs.
  int step_buffers() const { return asynchronous ? 2 : 1; }
};
inline DeviceTraits traits_of(const Backend& backend) {
  return {backend.on_host(), backend.asynchronous(), backend.compute_streams()};
}

// A line of `check` about a rank's memory: the bytes of a region or of another purpose.
struct MemoryLine {
  std::string_view name;
  std::int64_t bytes = 0;
  bool depends_on_kernels = false;  // whether other kernels may need other bytes (compute copies, arena)
};

// The name of the line for the copies of a run's state in shared memory, which are not the memory of a rank.
inline constexpr std::string_view shared_memory_line = "rank 0's host: copies in /dev/shm";

struct MemoryPlan {
  std::array<std::int64_t, region_count> bytes{};  // bytes of each region; the slot region counts all slots
  int slots = 1;
  std::int64_t slot_bytes = 0;
  // The layout of a step's staging buffer; only the scalars if kernels read a batch in the caller's memory.
  StagingPlan staging;
  std::int64_t sums = 0;        // offset in bytes of the sums from the start of the gradient region
  std::int64_t prefetched = 0;  // bytes of host memory for the batches that batch sources prepare ahead
  std::int64_t staged = 0;      // bytes of host memory for the copies that checkpoints are written from
  bool on_host = true;          // whether the regions are in host memory, too

  std::int64_t of(Region region) const { return bytes[static_cast<std::size_t>(region)]; }
  // Bytes in the device's memory; if that is the host's memory, `prefetched` and `staged` are included.
  std::int64_t total() const;
  // Every region, then prefetched batches and copies for checkpoints, under the names that users read.
  std::vector<MemoryLine> lines() const;
};

// The least memory that the programs need with any kernels: the flat regions, and an arena that holds the tensors of
// the op with the most bytes.
MemoryPlan least_memory(const std::vector<Program>& programs);

// Assigns every tensor and workspace its region and offset. The programs share parameters, gradients, states,
// statistics, scalars, compute copies of equal layout, and the arena. If none of the programs trains, there are no
// gradients and no states.
MemoryPlan place_tensors(std::vector<PlacedProgram>& programs, const DeviceTraits& device);

}  // namespace trainctl
