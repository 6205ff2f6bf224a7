// Translates activations and softmax. Activations without an operator in the opset are composed of several operators.
#include <numbers>

#include "core/graph/ops/elementwise/activations.h"
#include "io/onnx/ops/ops.h"

namespace trainctl::onnx {

std::string activated(const OnnxOp& op, const ActivationFunction& function, const std::string& x) {
  switch (function.kind) {
    case ActivationKind::none:
      return x;
    case ActivationKind::relu:
      return op.node("Relu", {x});
    case ActivationKind::relu6:
      return op.node("Clip", {x, op.number(0), op.number(6)});
    case ActivationKind::leaky_relu:
      return op.node("LeakyRelu", {x}, {{"alpha", function.slope}});
    case ActivationKind::elu:
      return op.node("Elu", {x}, {{"alpha", function.slope}});
    case ActivationKind::selu:
      return op.node("Selu", {x}, {{"alpha", selu_alpha}, {"gamma", selu_scale}});
    case ActivationKind::gelu: {
      constexpr float half = 0.5f, one = 1, root = 1 / std::numbers::sqrt2_v<float>;
      const std::string erf_value = op.node("Erf", {op.node("Mul", {x, op.number(root)})});
      return op.node("Mul", {op.node("Mul", {x, op.number(half)}), op.node("Add", {erf_value, op.number(one)})});
    }
    case ActivationKind::gelu_tanh: {
      const std::string square = op.node("Mul", {op.node("Mul", {x, x}), op.number(gelu_tanh_cubic)});
      const std::string inner = op.node("Mul", {x, op.node("Add", {square, op.number(1)})});
      return op.node("Mul", {x, op.node("Sigmoid", {op.node("Mul", {inner, op.number(2 * gelu_tanh_scale)})})});
    }
    case ActivationKind::silu:
      return op.node("Mul", {x, op.node("Sigmoid", {x})});
    case ActivationKind::mish:
      return op.node("Mul", {x, op.node("Tanh", {op.node("Softplus", {x})})});
    case ActivationKind::hard_swish:
      return op.node("HardSwish", {x});
    case ActivationKind::tanh:
      return op.node("Tanh", {x});
    case ActivationKind::sigmoid:
      return op.node("Sigmoid", {x});
    case ActivationKind::hard_sigmoid:
      return op.node("HardSigmoid", {x}, {{"alpha", 1.0f / 6}, {"beta", 0.5f}});
    case ActivationKind::softplus:
      return op.node("Softplus", {x});
  }
  return x;
}

void activation(const OnnxOp& op) {
  const Channels channels = op.channels();
  op.set_output(activated(op, op.as<Activation>().function, op.value(0, channels)), channels);
}

void softmax(const OnnxOp& op) {
  const Channels channels = op.channels();
  op.set_output(op.node("Softmax", {op.value(0, channels)}, {{"axis", channels == Channels::first ? 1 : -1}}),
                channels);
}

}  // namespace trainctl::onnx
