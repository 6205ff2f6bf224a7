// Tests models with several inputs and outputs: names, references, and the tensors that losses read.
#include <algorithm>

#include "core/layers/layer.h"
#include "test/catch.h"
#include "test/core/layers/build.h"

namespace trainctl::testing::outputs_test {
namespace {

const std::string layers = R"(layers:
  - dense: {name: a1, from: a, units: 4, activation: relu}
  - dense: {name: b1, from: b, units: 4}
  - add: {name: both, from: [a1, b1]}
  - dense: {name: kind, units: 3, activation: softmax}
  - dense: {name: size, from: both, units: 2}
)";
const std::string two = "inputs: [a, b]\noutputs: [kind, size]\n" + layers;

BuildOptions options_of(std::vector<bool> logits = {}) {
  BuildOptions options;
  options.inputs = {{"a", {5}, {}}, {"b", {6}, {}}};
  options.logits = std::move(logits);
  return options;
}

// Returns all error messages, one per line.
std::string errors_of(const std::string& yaml, const BuildOptions& options = options_of()) {
  Reader reader;
  build(yaml, options, reader);
  std::string text;
  for (const Diagnostic& diagnostic : reader.diagnostics()) text += to_string(diagnostic) + "\n";
  return text;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("inputs and outputs are tensors by their names") {
  Reader reader;
  const BuiltModel model = build(two, options_of(), reader);
  REQUIRE(reader.ok());
  const auto name = [&](TensorId id) { return model.graph.tensor(id).name; };
  REQUIRE(model.graph.inputs.size() == 2);
  CHECK(name(model.graph.inputs[0]) == "a");
  CHECK(model.graph.tensor(model.graph.inputs[1]).type.shape == Shape{1, 6});
  REQUIRE(model.graph.outputs.size() == 2);
  CHECK(name(model.graph.outputs[0]) == "kind/output");
  CHECK(name(model.graph.outputs[1]) == "size/output");
}

TEST_CASE("a loss of logits leaves out the softmax of its own output only") {
  const auto kinds = [](const std::vector<bool>& logits, const std::string& outputs) {
    Reader reader;
    const BuiltModel model = build("inputs: [a, b]\noutputs: " + outputs + "\n" + layers, options_of(logits), reader);
    REQUIRE(reader.ok());
    std::string text;
    for (const Op& op : model.graph.ops) text += std::string(op.def->kind()) + " ";
    return text;
  };
  CHECK(has(kinds({false, false}, "[kind, size]"), "softmax"));
  CHECK(has(kinds({false, true}, "[kind, size]"), "softmax"));
  CHECK_FALSE(has(kinds({true, false}, "[kind, size]"), "softmax"));
  CHECK_FALSE(has(kinds({false, true}, "[size, kind]"), "softmax"));
  Reader reader;
  const ModelOptions model = read_model(two, reader);
  CHECK(final_activation(model, 0) == FinalActivation::softmax);
  CHECK(final_activation(model, 1) == FinalActivation::none);

  // Another layer reads the softmax that would be left out.
  const std::string taken =
      "inputs: [a, b]\noutputs: [kind, size, more]\n" + layers + "  - dense: {name: more, from: kind, units: 2}\n";
  CHECK(has(errors_of(taken, options_of({true, false, false})), "another layer reads its output"));
  CHECK(errors_of("inputs: [a, b]\noutputs: [kind, size, more]\n" + layers +
                  "  - dense: {name: more, from: size, units: 2}\n")
            .empty());
}

TEST_CASE("the number of tokens is that of the embedding that reads the input") {
  Reader reader;
  const ModelOptions model = read_model(
      "inputs: [words, table]\nlayers: [{embedding: {name: e, from: words, input_dim: 9, output_dim: 2}}, {flatten: "
      "{name: f}}, {concatenate: {from: [f, table]}}, {dense: {units: 2}}]",
      reader);
  REQUIRE(reader.ok());
  CHECK(token_count(model, "words") == 9);
  CHECK(token_count(model, "table") == 0);
}

TEST_CASE("wrong inputs and outputs are reported with their locations") {
  CHECK(has(errors_of("inputs: [a, b]\noutputs: [kind, sise]\n" + layers),
            "m.yaml:2:17: there is no layer 'sise' for this output; did you mean 'size'?"));
  const std::string inner = errors_of("inputs: [a, b]\noutputs: [kind, size/inner]\n" + layers);
  CHECK(std::ranges::count(inner, '\n') == 1);
  CHECK(has(inner, "lambda: {name: inner, from: size/inner, expression: x}"));
  CHECK(has(errors_of("inputs: [a, a]\n" + layers), "m.yaml:1:13: input 'a' is given twice"));
  CHECK(has(errors_of("inputs: [a, name]\n" + layers), "input 'name': this name is reserved"));
  CHECK(has(errors_of("inputs: [a, b/c]\n" + layers), "input 'b/c': a name consists of"));
  CHECK(has(errors_of("inputs: [a, b]\noutputs: [kind]\n" + layers), "dense 'size': no layer reads its output"));
  CHECK(has(errors_of("inputs: [a, b]\nlayers: [{dense: {units: 3}}]"),
            "the model has several inputs: set which one dense reads, from: a or b"));
  CHECK(has(errors_of("inputs: [a, b]\nlayers: [{dense: {from: a, units: 3}}]"), "no layer reads the input 'b'"));
  CHECK(has(errors_of("inputs: [a, b]\nlayers: [{dense: {from: c, units: 3}}]"), "there is no layer 'c' before it"));
  CHECK(has(errors_of("inputs: [a, b]\nlayers: [{dense: {name: b, from: a, units: 3}}]"), "this name is taken"));
  std::string many = "outputs: [";
  for (int i = 0; i < 17; ++i) many += (i > 0 ? ", o" : "o") + std::to_string(i);
  CHECK(has(errors_of(many + "]\n" + layers), "there are 17 outputs, but at most 16 are allowed"));
}

}  // namespace trainctl::testing::outputs_test
