// From programs to placed programs: kernels for every op, places for every tensor.
#pragma once

#include <vector>

#include "core/backend/choices.h"
#include "core/compile/memory_plan.h"

namespace trainctl {

struct Compiled {
  std::vector<PlacedProgram> programs;
  MemoryPlan memory;
};

// The programs of one rank, with a backend's kernels. Throws what the backend throws.
Compiled compile(const std::vector<Program>& programs, Backend& backend, KernelChoices& choices);

// The same as they would lie on such a device with kernels that want no workspace and take tensors in their logical
// layouts, with compute copies of kernels in the dtype that their ops compute in. Nothing can be bound. For costs
// (bytes moved, work_of(); memory by region) without a device.
Compiled compile_without_kernels(const std::vector<Program>& programs, const DeviceTraits& device);

}  // namespace trainctl
