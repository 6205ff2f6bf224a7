// Lowers a program to ops with kernels, with reorders where layouts differ, and compute copies of parameters.
#pragma once

#include "core/compile/placed_program.h"

namespace trainctl {

// Chooses the kernels of ops: kernels of a backend, or assumed kernels without a device.
class Kernels {
 public:
  virtual ~Kernels() = default;

  // These functions have the same meaning as in Backend.
  virtual void prepare(const Program& program) = 0;
  virtual Lowering lower(const Op& op, const Program& program, const std::vector<Layout>& inputs) = 0;
  virtual bool updates_copies() const = 0;
  virtual bool adds_gradients() const = 0;
  // Whether ops run on the host: its caches keep the tensors between ops of the same rows (core/compile/row_groups.h),
  // and products take far longer than reading their inputs (core/compile/cheap_values.h).
  virtual bool on_host() const = 0;
};

// Lowers all segments in the order in which they first run, and then the updates. The result's tensors and workspaces
// have no offsets yet. Throws the errors of `kernels`.
PlacedProgram lower(Program program, Kernels& kernels);

}  // namespace trainctl
