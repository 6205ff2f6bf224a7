// The candidates for an op: the kernels that can compute it. The fastest is found once by timing, and is recorded.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/backend/cuda/lower.h"

namespace trainctl::cuda {

// A kernel that can compute an op, not yet bound to addresses. Its first run on a set of addresses may allocate.
struct Candidate {
  std::string implementation;  // the name that `bench ops` shows
  std::vector<Layout> inputs;  // layouts that the kernel requires; the outputs' layouts are logical
  std::int64_t workspace_bytes = 0;
  std::function<void(const Buffers&)> run;  // queues the kernel
};

// The names under which an op's candidates are recorded, and a function that makes the candidate with a given name.
// make() returns no value if the candidate cannot be made, or can no longer be made.
struct Candidates {
  std::function<std::vector<std::string>()> names;  // the most promising first
  std::function<std::optional<Candidate>(const std::string& name)> make;
  // Called before the candidates with these names are made; may be null.
  std::function<void(const std::vector<std::string>& names)> prepare;
};

// The key under which the choice for an op is recorded. It contains everything that the choice depends on except the
// hardware: the op, the types of its tensors, and the device's options.
std::string choice_key(const LowerContext& context);

// Lowers the op to the recorded candidate. If none is recorded, lowers the op to the candidate that is fastest on
// random data, and records it. If timing is off or forbidden, lowers the op to the first candidate that can be made; a
// deterministic device without timing instead runs all candidates, and uses the first that runs and is not outvoted by
// the others. Throws Error{config} if the op has no candidate.
Lowering lower_fastest(const LowerContext& context, const Candidates& candidates);

// The lowering to one candidate. Runs of the kernel use the same workspace, one after the other.
Lowering lowering_of(const LowerContext& context, const Candidate& candidate);

}  // namespace trainctl::cuda
