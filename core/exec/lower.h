// From a program to what a backend will run: an implementation for each op, and the reorders between them.
#pragma once

#include <vector>

#include "core/backend/backend.h"
#include "core/program/program.h"

namespace trainctl {

// A compute copy of a parameter, in the dtype and layout that kernels want; written by the op of the program's copies
// segment that has the same number, and by the update itself where `updated`.
struct ComputeCopy {
  TensorId tensor = no_tensor;
  TensorId parameter = no_tensor;
  bool updated = false;
};

// A program whose every op has an implementation. Tensors that lowering added (compute copies, reordered activations)
// stand behind those of the program.
struct LoweredProgram {
  Program program;                               // with reorders, and the copies segment filled
  int copies_segment = -1;                       // runs after the update, and before a program whose copies are stale
  std::vector<Layout> layouts;                   // of each tensor
  std::vector<std::vector<Lowering>> lowerings;  // [segment][op]; without bind for ops that the executor runs itself
  std::vector<ComputeCopy> copies;
};

// Lowers all segments in the order in which they first run. Throws what the backend throws.
LoweredProgram lower(Program program, Backend& backend, KernelChoices& choices);

}  // namespace trainctl
