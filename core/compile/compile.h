// Compiles programs to placed programs: a kernel for every op, a region and an offset for every tensor.
#pragma once

#include <vector>

#include "core/backend/choices.h"
#include "core/compile/memory_plan.h"

namespace trainctl {

struct Compiled {
  std::vector<PlacedProgram> programs;
  MemoryPlan memory;
};

// Compiles the programs of one rank with a backend's kernels. Throws the backend's errors.
Compiled compile(const std::vector<Program>& programs, Backend& backend, KernelChoices& choices);

// Compiles the programs for a device with these traits, with assumed kernels: no workspace, tensors in their logical
// layouts, compute copies of parameters in the dtype in which their ops compute. The result cannot be bound; it is used
// to compute costs without a device: bytes and FLOPs (work_of()), and the memory of each region.
Compiled compile_without_kernels(const std::vector<Program>& programs, const DeviceTraits& device);

}  // namespace trainctl
