// A kernel of this project that computes an op beside oneDNN's implementations.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
                   const std::function<void(const void*, const void*, void*, void*)>& call);

// Whether oneDNN's implementation multiplies matrices by AMX.
inline bool uses_amx(std::string_view implementation) { return implementation.find("amx") != std::string_view::npos; }

// Returns this project's kernel with this name, or null.
const OwnKernel* find_own(const std::vector<OwnKernel>& own, const std::optional<std::string>& implementation);

// oneDNN's implementation that this project's kernels are compared with: its seconds, or 0 if it was not timed.
struct OneDnnKernel {
  std::string_view implementation;
  double seconds;
};

// Chooses the fastest of this project's kernels if it takes less time than oneDNN's, or, if that was not timed, the
// first one that the rule chooses, unless oneDNN multiplies by AMX. Records the choice and returns it; null if oneDNN's
// implementation is chosen.
const OwnKernel* choose_own(const LowerContext& context, const std::vector<OwnKernel>& own, const OneDnnKernel& onednn);

}  // namespace trainctl::cpu
