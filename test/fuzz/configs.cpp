// Reads configs, from YAML to RunSpec, and expressions.
#include <optional>
#include <string>

#include "core/graph/graph.h"
#include "core/layers/expression/builder.h"
#include "core/layers/model/preset.h"
#include "io/yaml/yaml.h"
#include "parallel/health/faults/fault.h"
#include "run/run_spec.h"
#include "test/fuzz/targets.h"

namespace trainctl::fuzz {
namespace {

// Stands for every preset.
Node load_small_preset(const Node&, Reader& reader) {
  static const std::string preset =
      "shape: [4]\nparameters: {classes: 10, width: 4}\n"
      "layers:\n  - dense: {units: $width}\n  - dense: {units: $classes}\n";
  return parse_yaml(preset, "preset.yaml", "/configs", reader);
}

RunSpec read(const std::string& text) {
  Reader reader;
  const VariableLookup variables = [](const std::string& name) -> std::optional<std::string> {
    if (name == "EPOCHS") return "7";
    return {};
  };
  Node document = parse_yaml(text, "c.yaml", "/configs", reader);
  expand_variables(document, variables, reader);
  if (reader.refused() || (document.is_null() && !reader.ok())) reader.throw_if_failed();
  for (Node::Entry& entry : document.entries) {
    if (entry.key == "model") entry.value = expand_preset(entry.value, load_small_preset, reader);
  }
  RunSpec spec = read_run_spec(document, reader);
  reader.throw_if_failed();
  return spec;
}

}  // namespace

void fuzz_config(std::string_view bytes) {
  const std::string resolved = resolved_yaml(read(std::string(bytes)));
  try {
    read(resolved);
  } catch (const Error& error) {
    expect(false, ("a resolved config is refused: " + std::string(error.what())).c_str());
  }
}

// The bytes are the value of the key `faults`.
void fuzz_faults(std::string_view bytes) {
  const RunSpec spec = read(
      "data: {dataset: synthetic, shape: [4], classes: 3}\nmodel: {layers: [{dense: {units: 3}}]}\n"
      "train: {batch_size: 2, epochs: 1, loss: sparse_categorical_crossentropy, optimizer: sgd}\nfaults:\n" +
      std::string(bytes));
  for (const Choice& fault : spec.faults) {
    const auto& options = fault.as<FaultOptions>();
    expect(!options.text().empty() && options.acts_after() >= 1, "a fault has no text or no step");
  }
}

void fuzz_expression(std::string_view bytes) {
  Graph graph;
  graph.batch = 5;
  ExpressionScope scope;
  const auto add = [&](const char* name, Shape shape, DType dtype) {
    return graph.add_tensor({.name = name, .type = {std::move(shape), dtype}, .role = Role::input});
  };
  scope.tensors["x"] = {add("x", {5, 3, 4}, DType::float32), true};
  scope.tensors["y"] = {add("y", {5, 3, 4}, DType::float32), true};
  scope.tensors["w"] = {add("w", {4, 4}, DType::float32), false};
  const TensorId samples = add("samples", {5}, DType::int64), step = add("step", {}, DType::int64);
  scope.samples_and_step = [=] { return std::vector{samples, step}; };
  scope.append = [&](std::shared_ptr<const OpDef> def, std::vector<TensorId> inputs) {
    return graph.add_op(std::move(def), std::move(inputs), "expression", {})[0];
  };
  scope.type_of = [&](TensorId id) { return graph.tensor(id).type; };
  try {
    const Expression expression = parse_expression(bytes);
    names_in(expression);
    ExpressionBuilder builder(scope);
    builder.tensor(builder.evaluate(expression));
  } catch (const ExpressionError& error) {
    expect(error.column() >= 1 && error.column() <= static_cast<int>(bytes.size()) + 1,
           "a mistake is outside the expression");
  }
}

}  // namespace trainctl::fuzz
