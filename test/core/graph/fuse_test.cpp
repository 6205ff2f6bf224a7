// Tests which ops are fused and which are not, and that gradients follow the fused ops.
#include "core/graph/passes/fuse.h"

#include "core/graph/ops/images/pool2d.h"
#include "core/graph/ops/normalization/layer_norm.h"
#include "test/catch.h"
#include "test/core/graph/graphs.h"

namespace trainctl::fuse_test {
using Lines = std::vector<std::string>;

TEST_CASE("dense and convolution are fused with the activation after them") {
  GraphMaker m({4, 8, 8, 3});
  m.activation("r1", m.conv("c1", m.graph.inputs[0], 5), ActivationKind::relu);
  m.activation("t1", m.conv("c2", m.graph.outputs[0], 5), ActivationKind::tanh);
  const Graph fused = fuse(m.graph);
  CHECK(lines(fused, fused.ops) ==
        Lines{"conv2d (input, c1/kernel) -> (r1/output)", "conv2d (r1/output, c2/kernel) -> (t1/output)"});
  CHECK(fused.ops[0].as<Conv2d>().function.kind == ActivationKind::relu);
  CHECK(fused.ops[1].as<Conv2d>().function.kind == ActivationKind::tanh);
  CHECK(fused.outputs == m.graph.outputs);
}

TEST_CASE("the relu of a convolution moves into the max pooling that alone reads it") {
  const Window window{{2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}};
  const auto pooled = [&](GraphMaker& m, TensorId x, PoolMode mode, const std::string& name) {
    std::vector<std::string> suffixes{"output"};
    if (mode == PoolMode::max) suffixes.push_back("winners");
    return m.op(std::make_shared<Pool2d>(mode, window, true), {x}, name, suffixes);
  };
  GraphMaker m({4, 16, 16, 3});
  const TensorId first = m.activation("r1", m.conv("c1", m.graph.inputs[0], 5), ActivationKind::relu);
  const TensorId second =
      m.activation("r2", m.conv("c2", pooled(m, first, PoolMode::max, "p1"), 5), ActivationKind::relu);
  const TensorId third =
      m.activation("t3", m.conv("c3", pooled(m, second, PoolMode::average, "p2"), 5), ActivationKind::tanh);
  pooled(m, third, PoolMode::max, "p3");
  const Graph fused = fuse(m.graph);
  CHECK(fused.ops.size() == 6);
  CHECK(fused.ops[0].as<Conv2d>().function.kind == ActivationKind::none);
  CHECK(fused.ops[1].as<Pool2d>().relu);
  CHECK(fused.ops[2].as<Conv2d>().function.kind == ActivationKind::relu);
  CHECK_FALSE(fused.ops[3].as<Pool2d>().relu);  // the average of relus is another function
  CHECK(fused.ops[4].as<Conv2d>().function.kind == ActivationKind::tanh);
  CHECK_FALSE(fused.ops[5].as<Pool2d>().relu);

  GraphMaker shared({4, 16, 16, 3});
  const TensorId twice = shared.activation("r1", shared.conv("c1", shared.graph.inputs[0], 5), ActivationKind::relu);
  shared.sum("s", pooled(shared, twice, PoolMode::max, "p1"), pooled(shared, twice, PoolMode::max, "p2"));
  for (const Op& op : fuse(shared.graph).ops) {
    if (const auto* pool = op.get_if<Pool2d>()) CHECK_FALSE(pool->relu);
  }
}

TEST_CASE("without gradients, activations are not fused with products, but with sums and normalisation") {
  GraphMaker m({4, 8, 8, 5});
  const TensorId first = m.activation("r1", m.conv("c1", m.graph.inputs[0], 5), ActivationKind::relu);
  const TensorId second = m.activation("r2", m.norm("n", m.conv("c2", first, 5)), ActivationKind::relu);
  m.activation("r3", m.sum("s", first, second), ActivationKind::relu);
  const Graph fused = fuse(m.graph, false);
  CHECK(lines(fused, fused.ops) == Lines{"conv2d (input, c1/kernel) -> (c1/output)",
                                         "activation (c1/output) -> (r1/output)",
                                         "conv2d (r1/output, c2/kernel) -> (c2/output)",
                                         "batch_norm (c2/output, n/gamma, n/beta) -> (r2/output, n/mean, n/variance)",
                                         "add (r1/output, r2/output) -> (r3/output)"});
}

TEST_CASE("activations whose gradient reads the input are not fused") {
  for (ActivationKind kind : {ActivationKind::gelu, ActivationKind::silu}) {
    GraphMaker m({4, 8});
    m.activation("g", m.dense("a", m.graph.inputs[0], 5), kind);
    CHECK(fuse(m.graph).ops.size() == 2);
  }
}

TEST_CASE("an op is not fused if another op reads its result, or if the result is an output") {
  GraphMaker shared({4, 8});
  const TensorId a = shared.dense("a", shared.graph.inputs[0], 5);
  shared.sum("s", shared.activation("r", a, ActivationKind::relu), a);
  CHECK(fuse(shared.graph).ops.size() == 3);

  GraphMaker output({4, 8});
  const TensorId logits = output.dense("a", output.graph.inputs[0], 5);
  output.activation("r", logits, ActivationKind::relu);
  output.graph.outputs[0] = logits;
  CHECK(fuse(output.graph).ops.size() == 2);
}

TEST_CASE(
    "batch normalisation is fused with the sum and the relu after it, and its gradient has an output for each "
    "summand") {
  GraphMaker m({4, 8, 8, 5});
  const TensorId stem = m.activation("r0", m.conv("c0", m.graph.inputs[0], 5), ActivationKind::relu);
  const TensorId main =
      m.norm("n2", m.conv("c2", m.activation("r1", m.norm("n1", m.conv("c1", stem, 5)), ActivationKind::relu), 5));
  m.activation("r2", m.sum("s", main, stem), ActivationKind::relu);
  Graph fused = fuse(m.graph);
  CHECK(lines(fused, fused.ops) ==
        Lines{"conv2d (input, c0/kernel) -> (r0/output)", "conv2d (r0/output, c1/kernel) -> (c1/output)",
              "batch_norm (c1/output, n1/gamma, n1/beta) -> (r1/output, n1/mean, n1/variance)",
              "conv2d (r1/output, c2/kernel) -> (c2/output)",
              "batch_norm (c2/output, n2/gamma, n2/beta, r0/output) -> (r2/output, n2/mean, n2/variance)"});
  CHECK(fused.ops[2].as<BatchNorm>().a.relu);
  CHECK_FALSE(fused.ops[2].as<BatchNorm>().a.residual);
  CHECK(fused.ops[4].as<BatchNorm>().a.relu);
  CHECK(fused.ops[4].as<BatchNorm>().a.residual);

  m.graph = std::move(fused);
  const Backward backward = m.differentiate();
  const Op& last = backward.ops.at(0);
  CHECK(last.def->kind() == "batch_norm_grad");
  CHECK(last.as<BatchNormGrad>().a.residual);
  CHECK(last.as<BatchNormGrad>().a.relu);
  REQUIRE(last.outputs.size() == 4);
  CHECK(m.graph.tensor(last.outputs[3]).type == m.graph.tensor(stem).type);  // the shortcut's gradient
}

TEST_CASE("batch normalisation with residual and relu keeps one bit per element for its gradient") {
  GraphMaker m({4, 6, 6, 16});
  const TensorId main = m.norm("n", m.conv("c", m.graph.inputs[0], 16));
  m.activation("r", m.sum("s", main, m.graph.inputs[0]), ActivationKind::relu);
  m.graph = fuse(std::move(m.graph));
  CHECK(lines(m.graph, m.graph.ops).back() ==
        "batch_norm (c/output, n/gamma, n/beta, input) -> (r/output, n/mean, n/variance, n/mask)");
  CHECK(m.graph.tensors.back().type == TensorType{{4, 6, 6, 2}, DType::uint8});
  const Backward backward = m.differentiate();
  CHECK(m.graph.tensor(backward.ops.at(0).inputs.at(2)).name == "n/mask");
}

TEST_CASE("batch normalisation with relu is fused with max pooling after it in training, and with no other pooling") {
  const auto pooled = [](PoolMode mode, ActivationKind kind, bool shared) {
    GraphMaker m({4, 6, 6, 5});
    const TensorId y = m.activation("r", m.norm("n", m.conv("c", m.graph.inputs[0], 5)), kind);
    const Window window{{2, 2}, {2, 2}, {1, 1}, {}, {}};
    const auto outputs = m.graph.add_op(std::make_shared<Pool2d>(mode, window, true), {y}, "p", {},
                                        mode == PoolMode::max ? Lines{"output", "winners"} : Lines{"output"});
    m.graph.outputs[0] = outputs[0];
    if (shared) m.op(std::make_shared<GlobalAveragePool2d>(), {y}, "g");
    return m;
  };
  GraphMaker m = pooled(PoolMode::max, ActivationKind::relu, false);
  m.graph = fuse(std::move(m.graph));
  CHECK(lines(m.graph, m.graph.ops) ==
        Lines{"conv2d (input, c/kernel) -> (c/output)",
              "batch_norm_pool (c/output, n/gamma, n/beta) -> (p/output, n/mean, n/variance, p/winners)"});
  const Backward backward = m.differentiate();
  CHECK(lines(m.graph, backward.ops).at(0) ==
        "batch_norm_pool_grad (loss/gradient, p/winners, c/output, n/gamma, n/beta, n/mean, n/variance) -> (" +
            m.graph.tensor(backward.ops[0].outputs[0]).name + ", n/gamma/gradient, n/beta/gradient)");

  for (const auto& [mode, kind, shared] : {std::tuple{PoolMode::average, ActivationKind::relu, false},
                                           std::tuple{PoolMode::max, ActivationKind::tanh, false},
                                           std::tuple{PoolMode::max, ActivationKind::relu, true}}) {
    for (const Op& op : fuse(pooled(mode, kind, shared).graph).ops) CHECK(op.def->kind() != "batch_norm_pool");
  }
}

TEST_CASE("batch normalisation with a padding mask is fused with relu, and not with max pooling after it") {
  GraphMaker m({4, 6, 6, 5});
  Tensor shown;
  shown.name = "mask";
  shown.type = {{4, 6, 6}, DType::uint8};
  shown.role = Role::input;
  const TensorId mask = m.graph.add_tensor(std::move(shown));
  m.graph.inputs.push_back(mask);
  BatchNormAttributes attributes;
  attributes.masked = true;
  const TensorId gamma = m.parameter("gamma", {5}, false), beta = m.parameter("beta", {5}, false);
  const TensorId y = m.op(std::make_shared<BatchNorm>(attributes), {m.graph.inputs[0], gamma, beta, mask}, "n",
                          {"output", "mean", "variance", "count"});
  const Window window{{2, 2}, {2, 2}, {1, 1}, {}, {}};
  m.op(std::make_shared<Pool2d>(PoolMode::max, window, true), {m.activation("r", y, ActivationKind::relu)}, "p",
       {"output", "winners"});
  const Graph fused = fuse(std::move(m.graph));
  REQUIRE(fused.ops.size() == 2);
  CHECK(lines(fused, fused.ops)[0] ==
        "batch_norm (input, gamma, beta, mask) -> (r/output, n/mean, n/variance, n/count)");
  CHECK(fused.ops[1].def->kind() != "batch_norm_pool");
}

TEST_CASE("of two normalised summands, the second becomes the residual of the first, which comes after it") {
  GraphMaker m({4, 8, 8, 5});
  const TensorId left = m.norm("n1", m.conv("c1", m.graph.inputs[0], 5));
  const TensorId right = m.norm("n2", m.conv("c2", m.graph.inputs[0], 5));
  m.activation("r", m.sum("s", left, right), ActivationKind::relu);
  const Graph fused = fuse(m.graph);
  const Lines expected{"conv2d (input, c1/kernel) -> (c1/output)", "conv2d (input, c2/kernel) -> (c2/output)",
                       "batch_norm (c2/output, n2/gamma, n2/beta) -> (n2/output, n2/mean, n2/variance)",
                       "batch_norm (c1/output, n1/gamma, n1/beta, n2/output) -> (r/output, n1/mean, n1/variance)"};
  CHECK(lines(fused, fused.ops) == expected);
}

TEST_CASE("a tensor added to itself is not its own residual") {
  GraphMaker m({4, 8, 8, 5});
  const TensorId y = m.norm("n", m.conv("c", m.graph.inputs[0], 5));
  m.sum("s", y, y);
  CHECK(fuse(m.graph).ops.size() == 3);
}

TEST_CASE("an activation's gradient is fused with the input gradient of the dense layer after it") {
  GraphMaker m({4, 8});
  m.dense("b", m.activation("r", m.dense("a", m.graph.inputs[0], 5), ActivationKind::relu), 3);
  m.graph = fuse(std::move(m.graph));
  const Backward plain = m.differentiate();
  const Backward fused = fuse(plain);
  CHECK(fused.parameter_gradients == plain.parameter_gradients);
  REQUIRE(fused.ops.size() == plain.ops.size() - 1);
  CHECK(lines(m.graph, fused.ops) ==
        Lines{"dense_grad_weights (r/output, loss/gradient) -> (b/kernel/gradient, b/bias/gradient)",
              "dense_grad_input (loss/gradient, b/kernel, r/output) -> (" +
                  m.graph.tensor(plain.ops[2].outputs[0]).name + ")",
              "dense_grad_weights (input, " + m.graph.tensor(plain.ops[2].outputs[0]).name +
                  ") -> (a/kernel/gradient, a/bias/gradient)"});
  CHECK(fused.ops[1].as<DenseGradInput>().function.kind == ActivationKind::relu);
}

// A backward pass that a test writes by hand: gradients g0, g1, ... of one tensor, and their sums.
namespace {

struct Gradients : GraphMaker {
  Backward backward;

  Gradients() : GraphMaker({4, 8, 8, 5}) {}
  TensorId like(TensorId other, const std::string& name) {
    return add(name, graph.tensor(other).type.shape, Role::activation);
  }
  TensorId emit(std::shared_ptr<const OpDef> def, std::vector<TensorId> inputs, const std::string& name) {
    const TensorId result = like(graph.inputs[0], name);
    backward.ops.push_back({std::move(def), std::move(inputs), {result}, name, {}});
    return result;
  }
  TensorId conv_gradient(const std::string& name, TensorId dy) {
    const Window same{{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
    return emit(std::make_shared<Conv2dGradInput>(same, 1, graph.tensor(graph.inputs[0]).type.shape),
                {dy, parameter(name + "/kernel", {3, 3, 5, 5}, true)}, name);
  }
  TensorId sum(TensorId a, TensorId b, const std::string& name, ActivationFunction function = {}) {
    return emit(std::make_shared<Add>(function), {a, b}, name);
  }
  Lines fused() { return lines(graph, fuse(backward).ops); }
};

}  // namespace

TEST_CASE(
    "an input gradient is fused with its sum with another gradient, at its own position if the other exists there") {
  for (const bool swapped : {false, true}) {
    Gradients m;
    const TensorId dy = m.like(m.graph.inputs[0], "dy"), other = m.like(m.graph.inputs[0], "other");
    const TensorId g = m.conv_gradient("g", dy);
    const TensorId later =
        m.emit(std::make_shared<ActivationGrad>(ActivationFunction{ActivationKind::relu}), {dy, other}, "unrelated");
    const TensorId total = swapped ? m.sum(g, other, "total") : m.sum(other, g, "total");
    m.sum(total, later, "end");
    CHECK(m.fused() == Lines{"conv2d_grad_input (dy, g/kernel, other) -> (total)",
                             "activation_grad (dy, other) -> (unrelated)", "add (total, unrelated) -> (end)"});
    CHECK(fuse(m.backward).ops[0].as<Conv2dGradInput>().accumulate);
    CHECK(fuse(m.backward).ops[0].def->in_place().size() == 1);
  }
}

TEST_CASE("an input gradient moves to the position of the sum if the other gradient is computed later") {
  Gradients m;
  const TensorId dy = m.like(m.graph.inputs[0], "dy");
  const TensorId g = m.conv_gradient("g", dy);
  const TensorId later =
      m.emit(std::make_shared<ActivationGrad>(ActivationFunction{ActivationKind::relu}), {dy, dy}, "later");
  m.sum(g, later, "total");
  CHECK(m.fused() ==
        Lines{"activation_grad (dy, dy) -> (later)", "conv2d_grad_input (dy, g/kernel, later) -> (total)"});
}

TEST_CASE("of two input gradients the later one is fused with the sum, and of three all except the first one") {
  Gradients m;
  const TensorId dy = m.like(m.graph.inputs[0], "dy");
  const TensorId g0 = m.conv_gradient("g0", dy), g1 = m.conv_gradient("g1", dy);
  const TensorId sum = m.sum(g0, g1, "sum");
  m.sum(sum, m.conv_gradient("g2", dy), "total");
  CHECK(m.fused() == Lines{"conv2d_grad_input (dy, g0/kernel) -> (g0)",
                           "conv2d_grad_input (dy, g1/kernel, g0) -> (sum)",
                           "conv2d_grad_input (dy, g2/kernel, sum) -> (total)"});
}

TEST_CASE("a fused sum has no activation; its other summand may have other readers, its input gradient may not") {
  Gradients base;
  const TensorId dy = base.like(base.graph.inputs[0], "dy");
  const TensorId total = base.sum(dy, base.conv_gradient("g", dy), "total");
  base.sum(total, dy, "end");
  CHECK(base.fused() == Lines{"conv2d_grad_input (dy, g/kernel, dy) -> (total)", "add (total, dy) -> (end)"});

  Gradients gradient;
  const TensorId g = gradient.conv_gradient("g", gradient.like(gradient.graph.inputs[0], "dy"));
  gradient.sum(gradient.like(gradient.graph.inputs[0], "other"), g, "total");
  gradient.sum(g, g, "end");
  CHECK(fuse(gradient.backward).ops.size() == 3);

  Gradients active;
  const TensorId other = active.like(active.graph.inputs[0], "other");
  active.sum(other, active.conv_gradient("g", other), "total", {ActivationKind::relu});
  CHECK(fuse(active.backward).ops.size() == 2);
}

TEST_CASE("a dense layer's input gradient is fused with the sum or the activation, not with both") {
  GraphMaker m({4, 5});
  const TensorId x = m.activation("r", m.dense("a", m.graph.inputs[0], 5), ActivationKind::relu);
  m.sum("s", m.dense("b", m.activation("t", m.dense("c", x, 5), ActivationKind::gelu), 5), x);
  m.graph = fuse(std::move(m.graph));
  const Backward backward = fuse(m.differentiate());
  std::vector<std::string> kinds;
  for (const Op& op : backward.ops) {
    kinds.push_back(std::string(op.def->kind()) + " " + op.def->attributes());
    if (op.def->kind() == "dense_grad_input" && op.as<DenseGradInput>().accumulate) {
      CHECK(op.inputs.size() == 3);
      CHECK(m.graph.tensor(op.inputs[2]).name == "loss/gradient");
    }
  }
  CHECK(kinds == Lines{"dense_grad_weights bias", "dense_grad_input ", "activation_grad gelu",
                       "dense_grad_weights bias", "dense_grad_input accumulate", "activation_grad relu",
                       "dense_grad_weights bias"});
}

TEST_CASE("the gradient of layer normalization is fused with the sum of it and another gradient") {
  GraphMaker m({4, 5});
  const TensorId x = m.dense("a", m.graph.inputs[0], 5);
  const TensorId sum = m.sum("s", m.dense("b", x, 5), x);
  const auto norm = std::make_shared<LayerNorm>(LayerNormAttributes{{.scale = false, .center = false}});
  const TensorId y = m.graph.add_op(norm, {sum}, "norm", {}, {"output", "mean", "rstd"})[0];
  m.sum("t", m.dense("c", y, 5), sum);
  m.graph = fuse(std::move(m.graph));
  std::vector<std::string> kinds;
  for (const Op& op : fuse(m.differentiate()).ops) {
    kinds.push_back(std::string(op.def->kind()) + " " + op.name);
    if (const auto* gradient = op.get_if<LayerNormGrad>()) CHECK(gradient->adds);
  }
  CHECK(kinds == Lines{"dense_grad_weights c", "dense_grad_input c", "layer_norm_grad norm", "dense_grad_weights b",
                       "dense_grad_input b", "dense_grad_weights a"});
}

}  // namespace trainctl::fuse_test
