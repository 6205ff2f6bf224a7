// The candidates for an op: kernels that can compute it, of which the fastest is found by timing once and recorded.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/backend/cuda/lower.h"

namespace trainctl::cuda {

// A kernel that can compute an op, not yet bound to addresses. Its first run on a set of addresses may allocate.
struct Candidate {
  std::string implementation;  // for bench ops
  std::vector<Layout> inputs;  // which the kernel needs; the outputs' layouts are logical
  std::int64_t workspace_bytes = 0;
  std::function<void(const Buffers&)> run;  // queues the kernel
};

// The names under which an op's candidates are recorded, and a function that makes the candidate of a name; make()
// returns nothing where this candidate cannot be made (any more).
struct Candidates {
  std::function<std::vector<std::string>()> names;  // the most promising first
  std::function<std::optional<Candidate>(const std::string& name)> make;
  // Called before all candidates of these names are made; may be null.
  std::function<void(const std::vector<std::string>& names)> prepare;
};

// The key under which the choice for an op is recorded. It states all that the choice depends on beside the hardware:
// the op, the types of its tensors, and the device's options.
std::string choice_key(const LowerContext& context);

// Lowers the op to the recorded candidate, else to the fastest on random data, which is recorded; where timing is off
// or forbidden, to the first candidate that can be made. A deterministic device without timing runs all of them, and
// takes the first that runs and that the others do not outvote. Throws Error{config} where there is none.
Lowering lower_fastest(const LowerContext& context, const Candidates& candidates);

// The lowering to one candidate. Runs of the kernel follow one another in the same workspace.
Lowering lowering_of(const LowerContext& context, const Candidate& candidate);

}  // namespace trainctl::cuda
