// Cases of ops whose rules of placement are compared with kernels, each for whole tensors and for any parts of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/graph/ops/dense.h"
#include "core/graph/ops/elementwise/softmax.h"
#include "core/graph/ops/optimizers/optimizers.h"
#include "core/graph/ops/reshaping/shaping.h"
#include "core/graph/ops/training/update.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test {

inline bool is_floating(DType dtype) {
  return dtype == DType::float32 || dtype == DType::bfloat16 || dtype == DType::float16;
}

// Random multiples of 1/64 within [low, 1], which add up exactly in every dtype; small whole numbers in integer dtypes.
Value on_grid(const TensorType& type, std::uint64_t seed, double low = -1);

struct CaseInput {
  TensorType type;
  double low = -1;         // above 0 for what is a variance or a weight
  std::int64_t bound = 0;  // integers: below this

  Value value(std::uint64_t seed) const;
};

struct PlacementCase {
  std::string name;
  std::vector<CaseInput> inputs;  // the whole; sizes of dimensions are even where they can be cut
  // The op for inputs of these types; throws where there is none.
  std::function<std::shared_ptr<const OpDef>(const std::vector<TensorType>&)> make;
  int ways = 1;  // how many combinations of placements its rule accepts
  DType computes_in = DType::float32;
  bool compares = true;  // false: its outputs count what a rank has, of which each has half
};

std::vector<PlacementCase> placement_cases(DType dtype);

// Runs the op; ops without a kernel of their own by their parts or by what they are.
std::vector<Value> compute(Backend& backend, KernelChoices& choices, const std::shared_ptr<const OpDef>& def,
                           const std::vector<Value>& inputs, const std::vector<Value>& held);

}  // namespace trainctl::test
