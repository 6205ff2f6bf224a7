// Tests the structure of differentiated graphs: which ops there are, in which order, and what they read. The tests of
// kernels check the values.
#include <algorithm>
#include <set>

#include "core/graph/ops/dense.h"
#include "core/graph/ops/elementwise/activations.h"
#include "core/graph/ops/elementwise/dropout.h"
#include "core/graph/ops/elementwise/softmax.h"
#include "core/graph/ops/images/convolution.h"
#include "core/graph/ops/images/pool2d.h"
#include "core/graph/ops/normalization/batch_norm.h"
#include "core/graph/ops/reshaping/shaping.h"
#include "core/graph/passes/differentiate.h"
#include "test/catch.h"

namespace trainctl::differentiate_test {
namespace {

// A graph under construction; every helper adds one op and returns its first output.
struct Builder {
  Graph graph;

  explicit Builder(Shape input) {
    graph.batch = input[0];
    graph.training = true;
    graph.inputs = graph.outputs = {add("input", std::move(input), Role::input)};
  }
  TensorId add(const std::string& name, Shape shape, Role role, DType dtype = DType::float32) {
    Tensor tensor;
    tensor.name = name;
    tensor.type = {std::move(shape), dtype};
    tensor.role = role;
    return graph.add_tensor(std::move(tensor));
  }
  TensorId parameter(const std::string& name, Shape shape, bool trainable = true) {
    GraphParameter parameter;
    parameter.tensor = add(name, std::move(shape), Role::parameter);
    parameter.trainable = trainable;
    graph.parameters.push_back(parameter);
    return parameter.tensor;
  }
  template <class Def, class... Arguments>
  TensorId op(const std::string& name, std::vector<TensorId> inputs, Arguments... arguments) {
    const auto outputs = graph.add_op(std::make_shared<Def>(arguments...), std::move(inputs), name, {});
    return graph.outputs[0] = outputs[0];
  }
  TensorId dense(const std::string& name, TensorId x, std::int64_t units, bool trainable = true) {
    const std::int64_t in = graph.tensor(x).type.shape[1];
    const TensorId kernel = parameter(name + "/kernel", {in, units}, trainable);
    return op<Dense>(name, {x, kernel, parameter(name + "/bias", {units}, trainable)});
  }
  Backward differentiate(bool accumulate = false) {
    Tensor gradient = graph.tensor(graph.outputs[0]);
    gradient.name = "loss/gradient";
    const TensorId id = graph.add_tensor(std::move(gradient));
    return trainctl::differentiate(graph, {id}, accumulate);
  }

  // "dense_grad_weights(x, dy) -> (dkernel, dbias)" for every backward op.
  std::vector<std::string> text(const Backward& backward) const {
    std::vector<std::string> lines;
    for (const Op& op : backward.ops) {
      lines.push_back(std::string(op.def->kind()) + list(op.inputs) + " -> " + list(op.outputs));
    }
    return lines;
  }

 private:
  std::string list(const std::vector<TensorId>& ids) const {
    std::string text;
    for (TensorId id : ids) text += (text.empty() ? "" : ", ") + graph.tensor(id).name;
    return "(" + text + ")";
  }
};

using Lines = std::vector<std::string>;

// Checks what must hold for every backward pass: ops read tensors that exist, each tensor is written once and has the
// type that its op returns, every trainable parameter has a float32 gradient of its shape, and names are unique.
void check_sound(const Graph& graph, const Backward& backward, TensorId output_gradient) {
  std::set<TensorId> known{output_gradient, graph.inputs[0], graph.samples, graph.step};
  for (const GraphParameter& parameter : graph.parameters) known.insert(parameter.tensor);
  for (const Op& op : graph.ops) known.insert(op.outputs.begin(), op.outputs.end());
  for (const Op& op : backward.ops) {
    std::vector<TensorType> types;
    for (TensorId input : op.inputs) {
      CHECK(known.contains(input));
      types.push_back(graph.tensor(input).type);
    }
    const auto outputs = op.def->outputs(types);
    REQUIRE(outputs.size() == op.outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      CHECK(known.insert(op.outputs[i]).second);
      CHECK(graph.tensor(op.outputs[i]).type == outputs[i]);
    }
  }
  for (const GraphParameter& parameter : graph.parameters) {
    REQUIRE(backward.parameter_gradients.contains(parameter.tensor) == parameter.trainable);
    if (!parameter.trainable) continue;
    const TensorId gradient = backward.parameter_gradients.at(parameter.tensor);
    CHECK(known.contains(gradient));
    CHECK(graph.tensor(gradient).role == Role::gradient);
    CHECK(graph.tensor(gradient).type == graph.tensor(parameter.tensor).type);
  }
  std::set<std::string> names;
  for (const Tensor& tensor : graph.tensors) CHECK(names.insert(tensor.name).second);
}

void check_sound(const Builder& b, const Backward& backward) {
  const auto& tensors = b.graph.tensors;
  const auto gradient = std::find_if(tensors.begin(), tensors.end(), [](auto& t) { return t.name == "loss/gradient"; });
  check_sound(b.graph, backward, static_cast<TensorId>(gradient - tensors.begin()));
}

}  // namespace

TEST_CASE("a chain is walked backwards, and the input's gradient is not computed") {
  Builder b({4, 8});
  const auto hidden =
      b.op<Activation>("relu", {b.dense("a", b.graph.inputs[0], 5)}, ActivationFunction{ActivationKind::relu});
  b.dense("b", hidden, 3);
  const Backward backward = b.differentiate();
  CHECK(b.text(backward) ==
        Lines{"dense_grad_weights(relu/output, loss/gradient) -> (b/kernel/gradient, b/bias/gradient)",
              "dense_grad_input(loss/gradient, b/kernel) -> (relu/output/gradient)",
              "activation_grad(relu/output/gradient, relu/output) -> (a/output/gradient)",
              "dense_grad_weights(input, a/output/gradient) -> (a/kernel/gradient, a/bias/gradient)"});
  check_sound(b, backward);
}

TEST_CASE("an activation's gradient reads the activation's output or its input, fused or not") {
  for (ActivationKind kind : {ActivationKind::leaky_relu, ActivationKind::tanh, ActivationKind::sigmoid}) {
    Builder b({4, 8});
    b.op<Activation>("f", {b.dense("a", b.graph.inputs[0], 5)}, ActivationFunction{kind});
    CHECK(b.text(b.differentiate())[0] == "activation_grad(loss/gradient, f/output) -> (a/output/gradient)");
  }
  for (ActivationKind kind : {ActivationKind::gelu, ActivationKind::silu}) {
    Builder b({4, 8});
    b.op<Activation>("f", {b.dense("a", b.graph.inputs[0], 5)}, ActivationFunction{kind});
    CHECK(b.text(b.differentiate())[0] == "activation_grad(loss/gradient, a/output) -> (a/output/gradient)");
  }
  Builder fused({4, 8});
  fused.op<Dense>("a", {fused.graph.inputs[0], fused.parameter("a/kernel", {8, 5})},
                  ActivationFunction{ActivationKind::relu});
  const Backward backward = fused.differentiate();
  CHECK(fused.text(backward) == Lines{"activation_grad(loss/gradient, a/output) -> (a/activation_grad/0)",
                                      "dense_grad_weights(input, a/activation_grad/0) -> (a/kernel/gradient)"});
  Builder wrong({4, 8});
  wrong.op<Dense>("a", {wrong.graph.inputs[0], wrong.parameter("a/kernel", {8, 5})},
                  ActivationFunction{ActivationKind::gelu});
  CHECK_THROWS_AS(wrong.differentiate(), Error);
}

TEST_CASE("gradients of a tensor with several consumers are summed before its producer") {
  Builder b({4, 8});
  const TensorId shared = b.dense("a", b.graph.inputs[0], 8);
  const TensorId left = b.dense("left", shared, 6);
  const TensorId right = b.dense("right", shared, 6);
  b.op<Add>("sum", {b.op<Add>("pair", {left, right}), b.dense("third", shared, 6)});
  const Backward backward = b.differentiate();
  check_sound(b, backward);
  const Lines lines = b.text(backward);
  // Three consumers need two sums; the gradient of the producer's weights comes last and reads the total.
  CHECK(std::count_if(lines.begin(), lines.end(), [](auto& line) { return line.starts_with("add("); }) == 2);
  CHECK(lines.back() == "dense_grad_weights(input, a/output/gradient_5) -> (a/kernel/gradient, a/bias/gradient)");
  CHECK(lines[lines.size() - 2] == "add(a/output/gradient_3, a/output/gradient_4) -> (a/output/gradient_5)");
}

TEST_CASE("a skip connection shares the gradient and adds that of the branch") {
  Builder b({2, 6, 6, 3});
  Window window;
  window.size = {3, 3};
  window.padding_before = window.padding_after = {1, 1};
  const TensorId x =
      b.op<Conv2d>("stem", {b.graph.inputs[0], b.parameter("stem/kernel", {3, 3, 3, 8})}, window, std::int64_t{1});
  const TensorId branch =
      b.op<Conv2d>("branch", {x, b.parameter("branch/kernel", {3, 3, 8, 8})}, window, std::int64_t{1});
  b.op<Add>("residual", {branch, x});
  const Backward backward = b.differentiate();
  check_sound(b, backward);
  CHECK(b.text(backward) == Lines{"conv2d_grad_weights(stem/output, loss/gradient) -> (branch/kernel/gradient)",
                                  "conv2d_grad_input(loss/gradient, branch/kernel) -> (stem/output/gradient)",
                                  "add(loss/gradient, stem/output/gradient) -> (stem/output/gradient_2)",
                                  "conv2d_grad_weights(input, stem/output/gradient_2) -> (stem/kernel/gradient)"});
}

TEST_CASE("a tensor added to itself gets its gradient twice") {
  Builder b({4, 8});
  const TensorId a = b.dense("a", b.graph.inputs[0], 5);
  b.op<Add>("double", {a, a});
  CHECK(b.text(b.differentiate())[0] == "add(loss/gradient, loss/gradient) -> (a/output/gradient)");
}

TEST_CASE("nothing before the first trainable layer is computed, and frozen parameters get no gradient") {
  Builder b({4, 8});
  const TensorId frozen = b.dense("a", b.graph.inputs[0], 6, false);
  const TensorId trained =
      b.dense("b", b.op<Activation>("relu", {frozen}, ActivationFunction{ActivationKind::relu}), 6);
  b.dense("c", trained, 3, false);
  const Backward backward = b.differentiate();
  check_sound(b, backward);
  CHECK(b.text(backward) ==
        Lines{"dense_grad_input(loss/gradient, c/kernel) -> (b/output/gradient)",
              "dense_grad_weights(relu/output, b/output/gradient) -> (b/kernel/gradient, b/bias/gradient)"});
  Builder all_frozen({4, 8});
  all_frozen.op<Softmax>("softmax", {all_frozen.dense("a", all_frozen.graph.inputs[0], 3, false)});
  CHECK(all_frozen.differentiate().ops.empty());
}

TEST_CASE("the gradient of a frozen kernel with a trainable bias is a tensor that no op reads") {
  Builder b({4, 8});
  b.op<Dense>("a", {b.graph.inputs[0], b.parameter("a/kernel", {8, 5}, false), b.parameter("a/bias", {5})});
  const Backward backward = b.differentiate();
  check_sound(b, backward);
  CHECK(b.text(backward) ==
        Lines{"dense_grad_weights(input, loss/gradient) -> (a/dense_grad_weights/0, a/bias/gradient)"});
}

TEST_CASE("the gradient of a concatenation is split, and no op reads the pieces that are not needed") {
  Builder b({4, 8});
  const TensorId a = b.dense("a", b.graph.inputs[0], 5);
  const TensorId c = b.dense("c", b.graph.inputs[0], 3);
  b.op<Concatenate>("cat", {a, b.graph.inputs[0], c});
  CHECK(b.graph.tensor(b.graph.outputs[0]).type.shape == Shape{4, 16});
  const Backward backward = b.differentiate();
  check_sound(b, backward);
  const Lines lines = b.text(backward);
  CHECK(lines[0] == "split(loss/gradient) -> (a/output/gradient, cat/split/1, c/output/gradient)");
  CHECK(lines.size() == 3);
  CHECK(backward.ops[0].as<Split>().sizes == std::vector<std::int64_t>{5, 8, 3});
}

TEST_CASE("branches that do not reach the output are not differentiated") {
  Builder b({4, 8});
  const TensorId a = b.dense("a", b.graph.inputs[0], 5);
  b.op<Activation>("unused", {a}, ActivationFunction{ActivationKind::relu});
  b.op<Softmax>("softmax", {a});
  const Backward backward = b.differentiate();
  CHECK(b.text(backward)[0] == "softmax_grad(loss/gradient, softmax/output) -> (a/output/gradient)");
  CHECK(backward.ops.size() == 2);
}

TEST_CASE("the gradient of batch normalisation with everything fused has all inputs and outputs") {
  Builder b({4, 6});
  const TensorId x = b.dense("a", b.graph.inputs[0], 5);
  const TensorId gamma = b.parameter("bn/gamma", {5});
  const TensorId beta = b.parameter("bn/beta", {5});
  const auto def = std::make_shared<BatchNorm>(BatchNormAttributes{1e-3f, true, true, true, true});
  b.graph.outputs[0] = b.graph.add_op(def, {x, gamma, beta, x}, "bn", {}, {"output", "mean", "variance"})[0];
  const Backward backward = b.differentiate(true);
  check_sound(b, backward);
  const Lines lines = b.text(backward);
  CHECK(lines[0] ==
        "batch_norm_grad(loss/gradient, a/output, bn/output, bn/gamma, bn/mean, bn/variance) -> "
        "(a/output/gradient, bn/gamma/gradient, bn/beta/gradient, a/output/gradient_2)");
  CHECK(lines[1] == "add(a/output/gradient, a/output/gradient_2) -> (a/output/gradient_3)");
  CHECK(backward.ops[0].as<BatchNormGrad>().accumulate);
  CHECK(backward.ops[2].as<DenseGradWeights>().accumulate);
}

TEST_CASE("a batch normalisation's gradient reads ReLU's mask from bits or from x") {
  for (const bool residual : {false, true}) {
    Builder b({4, 6});
    const TensorId x = b.dense("a", b.graph.inputs[0], 8);
    std::vector<TensorId> inputs{x, b.parameter("bn/gamma", {8}), b.parameter("bn/beta", {8})};
    std::vector<std::string> outputs{"output", "mean", "variance"};
    if (residual) inputs.push_back(x), outputs.emplace_back("mask");
    const auto def = std::make_shared<BatchNorm>(BatchNormAttributes{1e-3f, true, true, residual, true});
    b.graph.outputs[0] = b.graph.add_op(def, inputs, "bn", {}, outputs)[0];
    if (residual) CHECK(b.graph.tensors.back().type == TensorType{{4, 1}, DType::uint8});
    const Backward backward = b.differentiate(true);
    check_sound(b, backward);
    CHECK(b.text(backward)[0] ==
          (residual ? "batch_norm_grad(loss/gradient, a/output, bn/mask, bn/gamma, bn/mean, bn/variance) -> "
                      "(a/output/gradient, bn/gamma/gradient, bn/beta/gradient, a/output/gradient_2)"
                    : "batch_norm_grad(loss/gradient, a/output, bn/gamma, bn/beta, bn/mean, bn/variance) -> "
                      "(a/output/gradient, bn/gamma/gradient, bn/beta/gradient)"));
  }
}

TEST_CASE("pooling, flattening, dropout and casts have the right gradient ops") {
  Builder b({2, 4, 4, 3});
  b.graph.samples = b.add("samples", {2}, Role::input, DType::int64);
  b.graph.step = b.add("step", {}, Role::scalar, DType::int64);
  Window one;
  const TensorId conv =
      b.op<Conv2d>("conv", {b.graph.inputs[0], b.parameter("conv/kernel", {1, 1, 3, 4})}, one, std::int64_t{1});
  Window two;
  two.size = two.strides = {2, 2};
  const auto pool = std::make_shared<Pool2d>(PoolMode::max, two, true);
  const TensorId pooled = b.graph.add_op(pool, {conv}, "pool", {}, {"output", "winners"})[0];
  const TensorId half = b.op<Cast>("cast", {pooled}, DType::bfloat16);
  const TensorId flat = b.op<Reshape>("flatten", {half}, Shape{2, 16});
  b.op<Dropout>("dropout", {flat, b.graph.samples, b.graph.step}, 0.5f, std::uint64_t{3}, 9u);
  CHECK(b.graph.tensor(flat).alias_of == half);
  const Backward backward = b.differentiate();
  check_sound(b, backward);
  CHECK(b.text(backward) == Lines{"dropout(loss/gradient, samples, step) -> (flatten/output/gradient)",
                                  "reshape(flatten/output/gradient) -> (cast/output/gradient)",
                                  "cast(cast/output/gradient) -> (pool/output/gradient)",
                                  "pool2d_grad(pool/output/gradient, pool/winners) -> (conv/output/gradient)",
                                  "conv2d_grad_weights(input, conv/output/gradient) -> (conv/kernel/gradient)"});
  CHECK(b.graph.tensor(backward.ops[1].outputs[0]).alias_of == backward.ops[1].inputs[0]);
}

}  // namespace trainctl::differentiate_test
