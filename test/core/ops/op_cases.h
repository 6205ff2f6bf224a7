// The list of op cases: every op that can be differentiated, alone or in the small graphs that fusion is about. Each
// case is used in several ways: against golden values, against finite differences, in each dtype, on each backend.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace trainctl::test {

struct OpCase {
  std::string name;    // of its values in test/golden/ops.safetensors
  std::string inputs;  // a letter each: x activation, in the dtype computed in; f float32 activation; p parameter;
                       // c constant, as the golden file holds it. All but constants have gradients.
  // Appends the ops to the graph and returns the tensors that the golden file holds as outputs; the first is
  // differentiated.
  std::function<std::vector<TensorId>(Graph&, const std::vector<TensorId>& inputs)> build;
  bool smooth = true;  // whether finite differences make sense
};

const std::vector<OpCase>& op_cases();

}  // namespace trainctl::test
