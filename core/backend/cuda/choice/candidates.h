// Kernels that can compute an op, of which the fastest is chosen by timing, once, and recorded.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/backend/cuda/lower.h"

namespace trainctl::cuda {

// One of the kernels that can compute an op, not bound to places yet; its first run on a set of places may allocate.
struct Candidate {
  std::string implementation;  // for bench ops
  std::vector<Layout> inputs;  // as it wants them; outputs are logical
  std::int64_t workspace_bytes = 0;
  std::function<void(const Places&)> run;  // queues it
};

// The names under which the candidates of an op are recorded, and the candidate of a name; none where it cannot be made
// (any more).
struct Candidates {
  std::function<std::vector<std::string>()> names;  // the most promising first
  std::function<std::optional<Candidate>(const std::string& name)> make;
  std::function<void(const std::vector<std::string>& names)> prepare;  // before all of them are made; may be null
};

// Under which the choice for an op is recorded: what it depends on beside the hardware, which is the op, the types of
// its tensors, and what kernels may do.
std::string choice_key(const LowerContext& context);

// The recorded candidate, else the fastest on random data, or where options().timing is off the first that can be made.
// Records it. Throws Error{config} where there is none.
Lowering lower_fastest(const LowerContext& context, const Candidates& candidates);

// Runs one after the other in the same workspace.
Lowering lowering_of(const LowerContext& context, const Candidate& candidate);

}  // namespace trainctl::cuda
