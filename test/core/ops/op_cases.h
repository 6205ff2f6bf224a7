// Lists the op cases: every op that can be differentiated, alone or in small graphs that are fused. Each case is
// compared with golden values and with finite differences, in each dtype and on each backend.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace trainctl::test {

struct OpCase {
  std::string name;    // prefix of its values in test/golden/ops.safetensors
  std::string inputs;  // one letter per input: x activation in the compute dtype; f float32 activation; p parameter;
                       // c constant with the dtype of the golden file. All but constants have gradients.
  // Appends the ops to the graph and returns the outputs that are in the golden file; the first one is differentiated.
  std::function<std::vector<TensorId>(Graph&, const std::vector<TensorId>& inputs)> build;
  bool smooth = true;  // whether finite differences approximate its gradients
};

const std::vector<OpCase>& op_cases();           // values: ops.safetensors
const std::vector<OpCase>& expression_cases();   // values: expressions.safetensors
void add_attention(std::vector<OpCase>& cases);  // test/core/ops/attention_cases.cpp

}  // namespace trainctl::test
