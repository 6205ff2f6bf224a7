// A kernel of this project that computes an op beside oneDNN's implementations.
#pragma once

#include <functional>
#include <string>

#include "core/backend/cpu/lower.h"

namespace trainctl::cpu {

struct OwnKernel {
  std::string implementation;
  bool by_rule;  // whether it is chosen if kernels are not timed
  // Returns the seconds of a call on random data; see best_seconds(). oneDNN's implementations of the gradient with
  // respect to the kernel do not compute the gradient of the bias, which then takes a pass of its own. A kernel that
  // computes both returns its seconds less those of that pass, so that they are comparable.
  std::function<double(double best_so_far)> seconds;
  std::function<Lowering()> lower;
};

// Returns the seconds of call(first input, second input, first output, workspace) on random inputs; see best_seconds().
double measure_own(const LowerContext& context, std::int64_t workspace_bytes, double best_so_far,
                   const std::function<void(const void*, const void*, float*, void*)>& call);

// Records the choice of this project's kernel if it takes less time than oneDNN's implementation, which takes
// `seconds`, or, if that was not timed (0), if the rule chooses it. Returns whether it is chosen.
bool takes_own(const LowerContext& context, const OwnKernel& own, double seconds);

}  // namespace trainctl::cpu
