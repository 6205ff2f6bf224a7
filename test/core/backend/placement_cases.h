// Lists the ops whose placement rules are compared with kernels, each for whole tensors and for any shards of them.
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
  double low = -1;         // lower bound of random values: above 0 for variances and weights
  std::int64_t bound = 0;  // upper bound of random integers (exclusive); 0: random numbers from `low`

  Value value(std::uint64_t seed) const;
};

struct PlacementCase {
  std::string name;
  std::vector<CaseInput> inputs;  // whole inputs; dimensions that can be split have even sizes
  // Returns the op for inputs of these types; throws if there is none.
  std::function<std::shared_ptr<const OpDef>(const std::vector<TensorType>&)> make;
  int ways = 1;  // number of combinations of placements that its rule accepts
  DType computes_in = DType::float32;
  bool compares = true;  // false: varying outputs count a rank's samples, which are half of all
};

using Types = std::vector<TensorType>;
using Cases = std::vector<PlacementCase>;

inline constexpr DType floats = DType::float32;

// Returns a PlacementCase::make that returns the same op for all shapes.
inline auto always(std::shared_ptr<const OpDef> def) {
  return [def = std::move(def)](const Types&) { return def; };
}
template <class Def, class... T>
auto always_a(T... arguments) {
  return always(std::make_shared<Def>(arguments...));
}

// test/core/backend/placement_image_cases.cpp
void add_convolutions(Cases& cases, DType dtype);
void add_volume_convolutions(Cases& cases, DType dtype);
void add_pooling(Cases& cases, DType dtype);
void add_normalisation(Cases& cases, DType dtype);
void add_synchronized_normalisation(Cases& cases, DType dtype);
// test/core/backend/placement_training_cases.cpp
void add_sums(Cases& cases, DType dtype);
void add_fused_loss(Cases& cases, DType dtype);
void add_update(Cases& cases);

Cases placement_cases(DType dtype);

// Computes the op; an op without a kernel is computed by its decomposition or its definition.
std::vector<Value> compute(Backend& backend, KernelChoices& choices, const std::shared_ptr<const OpDef>& def,
                           const std::vector<Value>& inputs, const std::vector<Value>& held);

}  // namespace trainctl::test
