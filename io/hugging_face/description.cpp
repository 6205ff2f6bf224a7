// Finds the family of a network, and compares the network with the preset of the family.
#include "io/hugging_face/description.h"

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/table.h"
#include "core/graph/graph.h"
#include "core/graph/ops/attention.h"
#include "core/layers/model/model.h"
#include "core/layers/model/model_options.h"
#include "core/layers/model/preset.h"
#include "io/hugging_face/graph_view.h"
#include "io/yaml/presets.h"

namespace trainctl {
namespace {

constexpr const char* presets_only =
    "--format huggingface writes networks of the presets bert, gpt2, llama and vit_b16";

Graph graph_of(const ModelOptions& model, const std::vector<ModelInput>& inputs, bool training) {
  Reader reader;
  Graph graph = build_model(model, {.inputs = inputs, .training = training}, reader).graph;
  reader.throw_if_failed();
  return graph;
}

// Describes the first difference between two networks; empty if they compute the same from the same parameters.
std::string first_difference(const Graph& found, const Graph& expected, const std::string& preset) {
  for (std::size_t i = 0; i < std::min(found.ops.size(), expected.ops.size()); ++i) {
    const Op &op = found.ops[i], &other = expected.ops[i];
    if (op.def->kind() == other.def->kind() && op.def->attributes() == other.def->attributes() &&
        op.inputs == other.inputs) {
      continue;
    }
    return format("'{}' computes {} ({}), but the preset {} has {} ({}) there", op.name, op.def->kind(),
                  op.def->attributes(), preset, other.def->kind(), other.def->attributes());
  }
  if (found.ops.size() != expected.ops.size()) {
    return format("it has {}, but the preset {} has {}", counted(found.ops.size(), "op"), preset,
                  grouped(std::ssize(expected.ops)));
  }
  for (std::size_t i = 0; i < std::min(found.tensors.size(), expected.tensors.size()); ++i) {
    const Tensor &tensor = found.tensors[i], &other = expected.tensors[i];
    if (tensor.type == other.type && (tensor.role != Role::parameter || tensor.name == other.name)) continue;
    return format("'{}' is {}, but the preset {} has '{}' {} there", tensor.name, to_string(tensor.type.shape), preset,
                  other.name, to_string(other.type.shape));
  }
  return found.outputs == expected.outputs ? "" : "it returns another result than the preset " + preset;
}

// Lets the preset of a language model keep documents apart if the network does. For a single text, which is what
// transformers' network reads, it computes the same without their numbers.
void keep_documents_apart(const Graph& graph, const std::vector<ModelInput>& inputs, HuggingFaceNetwork& network) {
  const auto* attention = GraphView(graph).op<Attention>();
  if (inputs.size() != 2 || attention == nullptr || !attention->a.documents) return;
  const auto is_read = [&](TensorId input) {
    return std::ranges::any_of(graph.ops, [&](const Op& op) {
      return op.get_if<Attention>() != nullptr && std::ranges::find(op.inputs, input) != op.inputs.end();
    });
  };
  const std::size_t documents = is_read(graph.inputs[0]) ? 0 : 1;
  append(network.with, "tokens", scalar_node(inputs[1 - documents].name));
  append(network.with, "documents", scalar_node(inputs[documents].name));
  for (const ModelInput& input : inputs) network.inputs.push_back(input.name);
}

// Removes the tensors that the network does not have, since it ends before they are used.
void keep_parameters(const Graph& graph, std::vector<TensorRule>& tensors) {
  std::set<std::string> names;
  for (const GraphParameter& parameter : graph.parameters) names.insert(graph.tensor(parameter.tensor).name);
  std::size_t stored = 0;
  std::erase_if(tensors, [&](const TensorRule& rule) {
    const bool kept = names.contains(rule.parts[0]);
    if (kept) stored += rule.parts.size();
    return !kept;
  });
  require(stored == names.size(), "a parameter of the preset has no name in Hugging Face's files");
}

}  // namespace

ModelOptions preset_model(const HuggingFaceNetwork& network) {
  Node model = map_node();
  append(model, "preset", scalar_node(network.preset));
  append(model, "with", network.with);
  if (!network.inputs.empty()) {
    Node names = sequence_node();
    for (const std::string& name : network.inputs) names.items.push_back(scalar_node(name));
    append(model, "inputs", std::move(names));
  }
  if (!network.until.empty()) append(model, "until", scalar_node(network.until));
  Reader reader;
  ModelOptions options;
  const Node expanded = expand_preset(model, load_preset, reader);
  if (reader.ok()) section_of<ModelOptions>().read(expanded, reader, &options);
  reader.throw_if_failed();
  return options;
}

HuggingFaceDescription describe_for_hugging_face(const ModelOptions& model, const std::vector<ModelInput>& inputs) {
  const Graph training = graph_of(model, inputs, true), graph = graph_of(model, inputs, false);
  for (const HuggingFaceFamily& family : hugging_face_families()) {
    std::optional<Json> config = family.describe(training);
    if (!config) continue;
    HuggingFaceNetwork network = read_hugging_face_config(*config, "config.json");
    keep_documents_apart(graph, inputs, network);
    const Graph preset = graph_of(preset_model(network), inputs, false);
    const std::string difference = first_difference(graph, preset, network.preset);
    if (!difference.empty()) {
      throw Error(ErrorKind::config, "transformers has no network that computes the same as this one: " + difference,
                  presets_only);
    }
    keep_parameters(graph, network.tensors);
    return {std::make_shared<Json>(std::move(*config)), std::move(network)};
  }
  throw Error(ErrorKind::config, "transformers has no network with the layers of this one", presets_only);
}

}  // namespace trainctl
