// Where every tensor of a run's programs lies, and how many bytes each region takes: known before anything is
// allocated.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/exec/lower.h"

namespace trainctl {

enum class Region { parameters, gradients, states, statistics, copies, scalars, slot };
inline constexpr int region_count = 7;

// "parameters", "gradients", ...: as `check` prints them. The slot is the arena: inputs, activations and workspace.
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

struct MemoryPlan {
  std::array<std::int64_t, region_count> bytes{};  // of the slot region: all slots together
  int slots = 1;
  std::int64_t slot_bytes = 0;
  std::vector<ProgramPlaces> programs;

  std::int64_t of(Region region) const { return bytes[static_cast<std::size_t>(region)]; }
  std::int64_t total() const;
};

// The programs share parameters, gradients, states, statistics, scalars, compute copies of equal layout, and the arena.
MemoryPlan plan_memory(const std::vector<LoweredProgram>& programs);

}  // namespace trainctl
