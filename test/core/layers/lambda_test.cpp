// Tests the layer lambda: shapes, weights, and the messages for expressions that do not fit.
#include <set>

#include "core/graph/ops/elementwise/random_numbers.h"
#include "test/catch.h"
#include "test/core/layers/build.h"

namespace trainctl::testing::lambda_test {
namespace {

std::string network(const std::string& options) {
  return "layers:\n  - lambda: " + options + "\n  - flatten\n  - dense: 1";
}

// The message without the file, the layer and its input.
std::string problem(const std::string& options, Shape sample = {4, 3}) {
  std::string text = errors(network(options), std::move(sample));
  const std::string before = "m.yaml:2:5: lambda 'lambda': ", after = " (from the input)";
  if (text.starts_with(before)) text.erase(0, before.size());
  if (text.ends_with(after)) text.erase(text.size() - after.size());
  return text;
}

Shape output(const std::string& expression, Shape sample) {
  return build(network(expression), std::move(sample)).layers[0].output;
}

}  // namespace

TEST_CASE("a lambda has the shape of its expression") {
  CHECK(output("tanh(x) * 2", {4, 3}) == Shape{4, 3});
  CHECK(output("'mean(x, axis=1, keepdims=True)'", {4, 3}) == Shape{1, 3});
  CHECK(output("'sum(x, axis=(1, 2))[:, None]'", {4, 3}) == Shape{1});
  CHECK(output("'x[:, 1:, None]'", {4, 3}) == Shape{3, 1, 3});
  CHECK(output("'ops.reshape(x, (-1, 2, 6))'", {4, 3}) == Shape{2, 6});
}

TEST_CASE("elements are numbered and selected along dimensions") {
  CHECK(output("'one_hot(x, 7)'", {4, 3}) == Shape{4, 3, 7});
  CHECK(output("'one_hot(x, 7, axis=1)'", {4, 3}) == Shape{7, 4, 3});
  CHECK(output("'argmax(x, axis=1)'", {4, 3}) == Shape{3});
  CHECK(output("'argmin(x, axis=-1, keepdims=True)'", {4, 3}) == Shape{4, 1});
  CHECK(output("'take(x, [2, 0, 1, 2], axis=-1)'", {4, 3}) == Shape{4, 4});
  CHECK(output("'take(x, -1, axis=1)'", {4, 3}) == Shape{3});
  CHECK(output("'flip(cumsum(x, axis=1), axis=(1, 2))'", {4, 3}) == Shape{4, 3});
  CHECK(output("'x[:, :, :, None] * arange(2, 9, 2) * eye(3, 4)'", {4, 3}) == Shape{4, 3, 4});
  CHECK(output("'stack([x, zeros_like(x)], axis=1)'", {4, 3}) == Shape{2, 4, 3});
}

TEST_CASE("the weights of a lambda are parameters of the model") {
  const BuiltModel model = build(
      network("{expression: 'tanh(x @ w + b)', weights: {w: {shape: [3, 5]}, b: {shape: [5], initializer: zeros}}}"),
      {4, 3});
  CHECK(model.layers[0].output == Shape{4, 5});
  CHECK(model.layers[0].parameters == 20);
  const Graph& graph = model.graph;
  CHECK(graph.tensor(graph.parameters[0].tensor).name == "lambda/b");
  CHECK_FALSE(graph.parameters[0].decay);
  CHECK(graph.tensor(graph.parameters[1].tensor).name == "lambda/w");
  CHECK(graph.parameters[1].decay);
}

TEST_CASE("a weight may be one number") {
  const BuiltModel model = build(network("{expression: x * s, weights: {s: {shape: [], initializer: ones}}}"), {4, 3});
  CHECK(model.layers[0].parameters == 1);
  CHECK(model.layers[0].output == Shape{4, 3});
}

TEST_CASE("a lambda combines the outputs of several layers, and elementwise functions are one op") {
  const BuiltModel model = build(
      "layers: [{dense: {name: a, units: 3}}, {dense: {name: b, from: input, units: 3}}, {lambda: {from: [a, b], "
      "inputs: "
      "[mean, noise], expression: 'mean + exp(0.5 * noise) * sigmoid(mean) - 1'}}, {dense: 1}]",
      {4});
  int computing = 0;
  for (const Op& op : model.graph.ops) computing += op.def->kind() == "elementwise" ? 1 : 0;
  CHECK(computing == 1);
}

TEST_CASE("equal parts of an expression are computed once") {
  const auto ops = [](const std::string& expression) {
    int count = 0;
    for (const Op& op : build(network(expression), {4, 6}).graph.ops) count += op.name == "lambda" ? 1 : 0;
    return count;
  };
  CHECK(ops("'glu(x) + x[:, :, :3]'") == ops("'glu(x)'"));
  CHECK(ops("'mean(x, axis=-1) * sum(x, axis=-1)'") > ops("'mean(x, axis=-1) * mean(x, axis=-1)'"));
}

TEST_CASE("a lambda draws random numbers in training and in prediction, others for each call") {
  const std::string layer = "'random_normal(x) + keras.random.uniform((shape(x)[0], 4, 3)) - random_normal(x)'";
  for (const bool training : {true, false}) {
    const BuiltModel model = build(network(layer), {4, 3}, training);
    std::set<std::uint32_t> places;
    for (const Op& op : model.graph.ops) {
      if (const auto* numbers = op.get_if<RandomNumbers>()) places.insert(numbers->layer);
    }
    CHECK(places.size() == 3);
  }
}

TEST_CASE("expressions that do not fit are reported with the column and the reason") {
  CHECK(problem("x * sigmod(x)") ==
        "column 5 of the expression: there is no function 'sigmod'; did you mean 'sigmoid'?");
  CHECK(problem("'take(x, [0, 4], axis=1)'") ==
        "column 1 of the expression: take(): 4 is not an index of a dimension of 4");
  CHECK(
      problem("'take(x, argmax(x, axis=1), axis=1)'") ==
      "column 1 of the expression: take(): indices that are a tensor select rows of a weight, along axis 0; for other "
      "tensors, indices must be a whole number or a list of them");
  CHECK(problem("'flip(x)'") ==
        "column 1 of the expression: flip(): axis is missing; without it, all samples would be one value, but samples "
        "do not depend on each other");
  CHECK(problem("'1 + cumsum(x, axis=0)'") ==
        "column 5 of the expression: cumsum(): axis 0 is that of the samples, which do not depend on each other");
  CHECK(problem("'argmax(x, axis=(1, 2))'") == "column 1 of the expression: argmax(): axis must be one number");
  CHECK(problem("'one_hot(x, 0)'") ==
        "column 1 of the expression: one_hot(): num_classes must be a number from 1 to 16777216");
  CHECK(problem("'x * arange(3, 1)'") ==
        "column 5 of the expression: arange(): from 3 to 1 in steps of 1 there is no number");
  CHECK(problem("'x * arange(1, 3, 0)'") == "column 5 of the expression: arange(): step must not be 0");
  CHECK(problem("'x * arange(1e9)'") ==
        "column 5 of the expression: arange(): the range has more than 16777216 numbers");
  CHECK(problem("'tf.gradients(x, x)'")
            .starts_with("column 1 of the expression: there is no function 'gradients', since its result would have "));
  CHECK(problem("x * betta") == "column 5 of the expression: 'betta' is unknown; the names are: x");
  CHECK(problem("x +") == "column 4 of the expression: the expression ends here, but a value is missing");
  CHECK(
      problem("sum(x)") ==
      "column 1 of the expression: sum(): axis is missing; without it, all samples would be one value, but samples do "
      "not depend on each other");
  CHECK(problem("'mean(x, axis=0)'") ==
        "column 1 of the expression: mean(): axis 0 is that of the samples, which do not depend on each other");
  CHECK(problem("'max(x, axis=3)'") == "column 1 of the expression: max(): axis 3 is not one of 3 dimensions");
  CHECK(problem("'sum(x, dim=1)'") ==
        "column 1 of the expression: sum(): there is no argument 'dim'; did you mean 'axis'? the arguments are: x "
        "axis=None keepdims=False");
  CHECK(
      problem("'x + x[:, 1:3]'") ==
      "column 3 of the expression: shapes (batch, 4, 3) and (batch, 2, 3) do not fit: dimensions must be equal, or 1");
  CHECK(problem("'x + x[:, 0]'") ==
        "column 3 of the expression: shapes (batch, 4, 3) and (batch, 3) do not fit: both have the samples in "
        "dimension 0, but different numbers of dimensions; add dimensions of size 1 with [:, None]");
  CHECK(problem("'x[1]'") ==
        "column 3 of the expression: dimension 0 is that of the samples, which must stay whole; write ':'");
  CHECK(problem("'x[:, 7]'") == "column 6 of the expression: 7 is not an index of a dimension of 4");
  CHECK(problem("'x[:, ::2]'") == "column 6 of the expression: the step of a slice must be 1");
  CHECK(problem("'x[..., ...]'") == "column 8 of the expression: there may be only one ...");
  CHECK(problem("x.sum(axis=1)") == "column 1 of the expression: tensors have no methods; write sum(x, ...)");
  CHECK(problem("'norm(x, 1, -1)'") == "column 1 of the expression: norm(): ord must be None or 2, the Euclidean norm");
  CHECK(problem("{expression: x @ (w * 2), weights: {w: {shape: [3, 3]}}}") ==
        "column 3 of the expression: matmul(): the factor without samples must be a weight itself, not a value that is "
        "computed from weights");
  CHECK(problem("einsum('bij,bjk->bik', x, x)") == "column 1 of the expression: einsum(): 'j' has the sizes 3 and 4");
  CHECK(problem("einsum('bii->bi', x)") ==
        "column 1 of the expression: einsum(): 'i' occurs twice in the dimensions 'bii', which is not supported");
  CHECK(problem("einsum('bij->ij', x)") ==
        "column 1 of the expression: einsum(): the result must begin with 'b', the letter of the samples");
  CHECK(problem("einsum('bi->b', x)") ==
        "column 1 of the expression: einsum(): 'bi' does not name the dimensions of (batch, 4, 3)");
  CHECK(problem("{expression: \"einsum('bij,kjl->bikl', x, w)\", weights: {w: {shape: [2, 3, 5]}}}") ==
        "column 1 of the expression: einsum(): the summed dimensions of the weight must be its first or its last ones; "
        "declare it as jkl");
  CHECK(problem("x @ x").starts_with("column 3 of the expression: matmul(): (batch, 4, 3) and (batch, 4, 3) do not "));
  CHECK(problem("'x * shape(x)[0]'") == "column 5 of the expression: multiply() takes tensors and numbers");
  CHECK(problem("'split(x, 2, axis=-1)[0]'") ==
        "column 1 of the expression: split(): a dimension of 3 cannot be split into 2 equal parts");
  CHECK(problem("'split(x, 2, axis=1)[2]'") == "column 21 of the expression: the list has 2 items");
  CHECK(problem("'random_normal((2, 3))'") ==
        "column 1 of the expression: random_normal(): shape must be a tensor, or a shape that begins with the number "
        "of samples, such as (shape(x)[0], 8)");
  CHECK(problem("'random_normal(x, stddev=x[:, :2])'").starts_with("column 1 of the expression: random_normal(): "));
  CHECK(problem("1 + 2").starts_with("the expression has the value of a number"));
  CHECK(problem("'sum(x, axis=(1, 2))'") ==
        "the expression has the value (batch), which is not one row or more for each sample");
  CHECK(problem("{expression: x * w, weights: {w: {shape: [4]}}}") ==
        "column 3 of the expression: shapes (batch, 4, 3) and (4) do not fit: dimensions must be equal, or 1");
  CHECK(problem("{expression: x, inputs: [x, y]}") ==
        "m.yaml:2:37: `inputs` must name the input of the expression, in the order of `from`");
  CHECK(problem("{expression: x, weights: {x: {shape: [3]}}}") == "m.yaml:2:38: 'x' is also an input");
}

}  // namespace trainctl::testing::lambda_test
