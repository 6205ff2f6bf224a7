// Lists the op cases: every op that can be differentiated, alone or in small graphs that are fused. Each case is
// compared with golden values and with finite differences, in each dtype and on each backend.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/graph/ops/elementwise/activations.h"

namespace trainctl::test {

using Ids = std::vector<TensorId>;

struct OpCase {
  std::string name;    // prefix of its values in test/golden/ops.safetensors
  std::string inputs;  // one letter per input: x activation in the compute dtype; f float32 activation; p parameter;
                       // c constant with the dtype of the golden file. All but constants have gradients.
  // Appends the ops to the graph and returns the outputs that are in the golden file; the first one is differentiated.
  std::function<std::vector<TensorId>(Graph&, const std::vector<TensorId>& inputs)> build;
  bool smooth = true;  // whether finite differences approximate its gradients
};

// Appends an op with one output, which becomes the graph's output, and returns this output.
TensorId append(Graph& graph, std::shared_ptr<const OpDef> def, Ids inputs, const std::string& name);
// Appends the activation after x and returns its output, or x if there is none. The fusion pass may fuse it with the op
// that computes x.
TensorId append(Graph& graph, ActivationKind kind, TensorId x);

const std::vector<OpCase>& op_cases();              // values: ops.safetensors
const std::vector<OpCase>& expression_cases();      // values: expressions.safetensors
void add_attention(std::vector<OpCase>& cases);     // test/core/ops/attention_cases.cpp
void add_convolutions(std::vector<OpCase>& cases);  // test/core/ops/convolution_cases.cpp

}  // namespace trainctl::test
