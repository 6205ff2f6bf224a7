// Fusion: what becomes one op, what must not, and that gradients follow.
#include "core/program/fuse.h"

#include "test/catch.h"
#include "test/program/graphs.h"

using namespace trainctl;
using Lines = std::vector<std::string>;

TEST_CASE("dense and convolution take the activation behind them") {
  GraphMaker m({4, 8, 8, 3});
  m.activation("r1", m.conv("c1", m.graph.input, 5), ActivationKind::relu);
  m.activation("t1", m.conv("c2", m.graph.output, 5), ActivationKind::tanh);
  const Graph fused = fuse(m.graph);
  CHECK(lines(fused, fused.ops) ==
        Lines{"conv2d (input, c1/kernel) -> (r1/output)", "conv2d (r1/output, c2/kernel) -> (t1/output)"});
  CHECK(fused.ops[0].as<Conv2d>().function.kind == ActivationKind::relu);
  CHECK(fused.ops[1].as<Conv2d>().function.kind == ActivationKind::tanh);
  CHECK(fused.output == m.graph.output);
}

TEST_CASE("functions whose gradient needs the input stay alone") {
  for (ActivationKind kind : {ActivationKind::gelu, ActivationKind::silu}) {
    GraphMaker m({4, 8});
    m.activation("g", m.dense("a", m.graph.input, 5), kind);
    CHECK(fuse(m.graph).ops.size() == 2);
  }
}

TEST_CASE("what has another reader, or is the output, is not swallowed") {
  GraphMaker shared({4, 8});
  const TensorId a = shared.dense("a", shared.graph.input, 5);
  shared.sum("s", shared.activation("r", a, ActivationKind::relu), a);
  CHECK(fuse(shared.graph).ops.size() == 3);

  GraphMaker output({4, 8});
  const TensorId logits = output.dense("a", output.graph.input, 5);
  output.activation("r", logits, ActivationKind::relu);
  output.graph.output = logits;
  CHECK(fuse(output.graph).ops.size() == 2);
}

TEST_CASE("batch normalisation takes the sum and the relu behind it, and the gradient splits again") {
  GraphMaker m({4, 8, 8, 5});
  const TensorId stem = m.activation("r0", m.conv("c0", m.graph.input, 5), ActivationKind::relu);
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
  CHECK(m.graph.tensor(last.outputs[3]).type == m.graph.tensor(stem).type);  // the shortcut's share
}

TEST_CASE("of two normalised summands one takes the other, behind both") {
  GraphMaker m({4, 8, 8, 5});
  const TensorId left = m.norm("n1", m.conv("c1", m.graph.input, 5));
  const TensorId right = m.norm("n2", m.conv("c2", m.graph.input, 5));
  m.activation("r", m.sum("s", left, right), ActivationKind::relu);
  const Graph fused = fuse(m.graph);
  const Lines expected{"conv2d (input, c1/kernel) -> (c1/output)", "conv2d (input, c2/kernel) -> (c2/output)",
                       "batch_norm (c2/output, n2/gamma, n2/beta) -> (n2/output, n2/mean, n2/variance)",
                       "batch_norm (c1/output, n1/gamma, n1/beta, n2/output) -> (r/output, n1/mean, n1/variance)"};
  CHECK(lines(fused, fused.ops) == expected);
}

TEST_CASE("a tensor added to itself is not its own residual") {
  GraphMaker m({4, 8, 8, 5});
  const TensorId y = m.norm("n", m.conv("c", m.graph.input, 5));
  m.sum("s", y, y);
  CHECK(fuse(m.graph).ops.size() == 3);
}

TEST_CASE("an activation's gradient joins the dense layer behind it") {
  GraphMaker m({4, 8});
  m.dense("b", m.activation("r", m.dense("a", m.graph.input, 5), ActivationKind::relu), 3);
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
