// Where every tensor of a run's programs lies, and how many bytes each region takes: known before anything is
// allocated.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/exec/lower.h"
#include "core/exec/step_inputs.h"

namespace trainctl {

enum class Region { parameters, gradients, states, statistics, copies, scalars, batches, slot };
inline constexpr int region_count = 8;

// "parameters", "gradients", ...: as `check` prints them. The slot is the arena: inputs, activations and workspace.
// Batches wait in theirs for their steps, on devices that compute beside the host.
std::string_view name_of(Region region);

// A tensor's place: bytes from the start of its region. States of all kinds share one region, one behind the other.
struct Location {
  Region region = Region::slot;
  std::int64_t offset = 0;
};

struct ProgramPlaces {
  std::vector<Location> tensors;
  std::vector<std::vector<std::int64_t>> workspaces;  // [segment][op]: offset in the slot, -1 where there is none
};

// Where scalars and batch lie side by side on their way to a step, by StepInputs: the inputs, which may come from
// memory of their own, behind the rest.
struct StagingPlan {
  std::array<std::int64_t, step_inputs> offsets{};
  std::int64_t bytes = 0;
};

// With how many buffers steps are under way: two where one is prepared while another runs.
inline int step_buffers_of(const Backend& backend) { return backend.asynchronous() ? 2 : 1; }

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
  StagingPlan staging;  // of one of a step's buffers; of the scalars alone where a batch is read where it lies
  std::vector<ProgramPlaces> programs;
  std::int64_t prefetched = 0;  // bytes of host memory for the batches that the sources of batches prepare ahead
  bool on_host = true;          // the regions lie in host memory, too

  std::int64_t of(Region region) const { return bytes[static_cast<std::size_t>(region)]; }
  // Of the device's memory: with what is prefetched where that is the host's.
  std::int64_t total() const;
  // Every region, then the prefetched batches, by the names that users read.
  std::vector<MemoryLine> lines() const;
};

// What the programs need at least, before anything is known of kernels: the flat regions, and as arena the tensors of
// the op that has most of them. No places.
MemoryPlan least_memory(const std::vector<Program>& programs);

// The programs share parameters, gradients, states, statistics, scalars, compute copies of equal layout, and the arena.
MemoryPlan plan_memory(const std::vector<LoweredProgram>& programs, const Backend& backend);

}  // namespace trainctl
