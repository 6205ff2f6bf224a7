// The `model` section, and the graph of a model.
#include "core/layers/model/model.h"

#include <algorithm>
#include <optional>

#include "core/base/format.h"
#include "core/layers/activations.h"
#include "core/layers/model/expansion.h"
#include "core/layers/model/model_options.h"
#include "core/layers/model/names.h"
#include "core/spec/suggestion.h"

namespace trainctl {

namespace {

std::vector<std::string> names_of(const std::vector<Reference>& references) {
  if (references.empty()) return {""};
  std::vector<std::string> names;
  for (const Reference& reference : references) names.push_back(reference.name);
  return names;
}

// The names under which layers refer to the model's inputs.
std::vector<std::string> feature_names(const ModelOptions& model) {
  return model.inputs.empty() ? std::vector<std::string>{"input"} : names_of(model.inputs);
}

void check_list(const std::vector<Reference>& references, const std::string& what, Reader& reader) {
  const bool is_output = what == "output";
  if (references.size() > max_outputs) {
    reader.error(references[0].location,
                 format("there are {} {}s, but at most {} are allowed", references.size(), what, max_outputs));
  }
  for (std::size_t i = 0; i < references.size(); ++i) {
    if (const std::string& name = references[i].name; is_output && name.find('/') != std::string::npos) {
      reader.error(references[i].location,
                   format("output '{}': only layers of the model's own list can be named; let one of them read this "
                          "value, as in `lambda: {{name: {}, from: {}, expression: x}}`, and name that layer",
                          name, name.substr(name.rfind('/') + 1), name));
    } else if (!is_name(name)) {
      reader.error(references[i].location,
                   format("{} '{}': a name consists of letters, digits, '_', '-' and '.'", what, references[i].name));
    }
    if (references[i].name == "name") {  // would be confused with a choice's own key: `loss: {name: huber}`
      reader.error(references[i].location, format("{} 'name': this name is reserved", what));
    }
    const auto same = [&](const Reference& other) { return other.name == references[i].name; };
    const auto end = references.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::find_if(references.begin(), end, same) == end) continue;
    reader.error(references[i].location, format("{} '{}' is given twice", what, references[i].name));
  }
}

// Reports an added loss that reads targets without saying of which output, or of an output that does not exist.
void check_targets(const AddedLoss& loss, const ModelOptions& model, Reader& reader) {
  const std::vector<std::string> outputs = names_of(model.outputs);
  const std::string& name = loss.targets.name;
  if (!name.empty() && model.outputs.empty()) {
    reader.error(loss.targets.location, "the model has one output, which has no name: leave `targets` out");
  } else if (!name.empty() && std::ranges::find(outputs, name) == outputs.end()) {
    std::string hint = suggestion(name, outputs);
    if (hint.empty()) hint = "; there is " + join_or(outputs);
    reader.error(loss.targets.location, format("the model has no output '{}'{}", name, hint));
  } else if (name.empty() && outputs.size() > 1 && loss.reads_targets()) {
    reader.error(
        loss.expression.location,
        format("the expression uses y_true: set the output whose targets they are, targets: {}", join_or(outputs)));
  }
}

// Reports names of added losses that cannot be names of results, or that outputs have, too.
void check_added_losses(const ModelOptions& model, Reader& reader) {
  for (const auto& [name, loss] : model.add_loss) {
    const SourceLocation& location = loss.expression.location;
    if (!is_name(name) || name == "output" || name == "val" || name.starts_with("val_")) {
      reader.error(location, format("add_loss '{}': a name consists of letters, digits, '_', '-' and '.', is not "
                                    "'output', and does not begin with 'val'",
                                    name));
    }
    check_targets(loss, model, reader);
    for (const Reference& output : model.outputs) {
      if (output.name == name) reader.error(location, format("add_loss '{}': an output has this name, too", name));
    }
  }
  if (!model.add_loss.empty() && model.outputs.size() + model.add_loss.size() > max_outputs) {
    reader.error(model.add_loss.begin()->second.expression.location,
                 format("there are {} outputs and added losses, but at most {} are allowed",
                        model.outputs.size() + model.add_loss.size(), max_outputs));
  }
}

// Returns the number of the layer that an output names; empty if no layer has that name.
std::optional<std::size_t> layer_of(const ModelOptions& model, std::size_t output) {
  if (model.layers.empty()) return std::nullopt;
  if (model.outputs.empty()) return model.layers.size() - 1;
  Reader ignored;
  const std::vector<std::string> names = layer_names(model.layers, "", feature_names(model), ignored);
  const auto found = std::find(names.begin(), names.end(), model.outputs[output].name);
  if (found == names.end()) return std::nullopt;
  return static_cast<std::size_t>(found - names.begin());
}

void check_model(const ModelOptions& model, const Node&, Reader& reader) {
  if (!model.until.name.empty()) {
    reader.error(
        model.until.location,
        "until names a layer of a preset or of an included network: it needs `preset: NAME` or `include: FILE` in "
        "the same section");
  }
  if (!model.replace.is_null()) {
    reader.error(model.replace.location,
                 "replace names layers of an included network: it needs `include: FILE` in the same section");
  }
  check_list(model.inputs, "input", reader);
  check_list(model.outputs, "output", reader);
  check_added_losses(model, reader);
  const bool read = std::all_of(model.layers.begin(), model.layers.end(), [](const Choice& layer) { return !!layer; });
  if (!read || model.layers.empty()) return;
  Reader ignored;
  const std::vector<std::string> names = layer_names(model.layers, "", feature_names(model), ignored);
  for (std::size_t i = 0; i < model.outputs.size(); ++i) {
    const Reference& output = model.outputs[i];
    if (layer_of(model, i) || !is_name(output.name)) continue;  // a name that is no name was reported
    reader.error(output.location,
                 format("there is no layer '{}' for this output{}", output.name, suggestion(output.name, names)));
  }
  const std::vector<Reference> first = model.layers[0].as<LayerOptions>().references();
  if (model.inputs.size() > 1 && (first.empty() || first[0].name.empty())) {
    reader.error(model.layers[0].location, format("the model has several inputs: set which one {} reads, from: {}",
                                                  model.layers[0].name, join_or(input_names(model))));
  }
}

}  // namespace

Keys<ModelOptions> ModelOptions::keys() {
  return Keys<ModelOptions>("model", "The network: a preset, or a list of layers.")
      .key("preset", &ModelOptions::preset,
           "A network of configs/models by name, or a path to a file of the same format.")
      .key("with", &ModelOptions::with, "The preset's parameters by name; absent: its defaults.")
      .key("layers", &ModelOptions::layers,
           "The layers in order; each reads the output of the previous one. At most 5000; the layers of a repeat count "
           "each time.")
      .key("until", &ModelOptions::until,
           "With `include: FILE`, a config with another network, as `trainctl import` writes it: the last layer that "
           "is kept from that network; `layers` follow it. The new layers keep their initial values. With a preset: "
           "the last layer of the network.")
      .key("replace", &ModelOptions::replace,
           "With `include: FILE`: layers that replace the included network's layers of these names, as in `{act: relu, "
           "predictions: {dense: {units: 5}}}`. Each keeps the name and the inputs of the layer that it replaces, and "
           "begins with initial values; all other layers keep the included weights.")
      .key("weights", &ModelOptions::weights, "Weights to start from, read from a file.")
      .key("inputs", &ModelOptions::inputs,
           "Names of the inputs if there are several; layers read them by `from`. Absent: one input, which the first "
           "layer reads.")
      .key("outputs", &ModelOptions::outputs,
           "The layers that are outputs if there are several; each has a loss of its own (`train.loss`). At most 16. "
           "If a layer is used several times, its last use is the output. Absent: the last layer.")
      .key("add_loss", &ModelOptions::add_loss,
           "Losses of values inside the network by name, which are added to the losses of the outputs, as in `{kl: "
           "{from: [mean, log_variance], inputs: [m, v], expression: ...}}`; the results have them as NAME_loss.")
      .key("freeze", &ModelOptions::freeze,
           "Patterns of the names of layers that do not train (`conv*`; a block's name means all its layers): their "
           "weights stay as they are, and neither gradients nor optimizer state are computed, sent or kept for them. A "
           "frozen batch_normalization normalizes by its running statistics and does not change them, as in Keras with "
           "trainable = False; weight decay and regularizers do not apply to frozen weights.")
      .exclusive({"preset", "layers"})
      .one_of({"layers", "preset"}, "the network")
      .check(check_model);
}

bool has_whole_batch_loss(const ModelOptions& model) {
  return std::ranges::any_of(model.add_loss, [](const auto& loss) { return loss.second.whole_batch; });
}

bool adds_loss_of_targets(const ModelOptions& model, const std::string& output) {
  return std::ranges::any_of(model.add_loss, [&](const auto& loss) {
    const AddedLoss& added = loss.second;
    return (added.targets.name == output || model.outputs.size() <= 1) && added.reads_targets();
  });
}

std::vector<std::string> input_names(const ModelOptions& model) { return names_of(model.inputs); }
std::vector<std::string> output_names(const ModelOptions& model) { return names_of(model.outputs); }

BuiltModel build_model(const ModelOptions& model, const BuildOptions& options, Reader& reader) {
  require(!model.layers.empty(), "a model was built before its preset was replaced by layers");
  std::optional<Expansion> expansion;
  try {
    expansion.emplace(model, options, reader);
  } catch (const OverflowError&) {
    std::string samples;
    for (const ModelInput& input : options.inputs)
      samples += (samples.empty() ? "" : " and ") + to_string(input.sample);
    reader.error(model.layers[0].location,
                 format("a batch of {} samples of {} is larger than any memory", options.batch, samples));
    return {};
  }
  const std::size_t before = reader.count();
  expansion->run();
  if (reader.count() == before) expansion->check_all_used();
  if (reader.count() == before && expansion->graph.parameters.empty()) {
    reader.error(model.layers[0].location, "the network has no parameters: there is nothing to train");
  }
  if (reader.count() == before) expansion->check_frozen();
  return {std::move(expansion->graph), std::move(expansion->lines), std::move(expansion->blocks),
          std::move(expansion->added_losses)};
}

std::int64_t token_count(const ModelOptions& model, const std::string& input) {
  std::int64_t least = 0;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    if (!model.layers[i]) continue;
    const auto& layer = model.layers[i].as<LayerOptions>();
    const std::int64_t tokens = layer.tokens();
    const std::vector<Reference> from = layer.references();
    const bool reads_input = model.inputs.size() <= 1 || (!from.empty() && from[0].name == input);
    if (tokens > 0 && reads_input) least = least == 0 ? tokens : std::min(least, tokens);
  }
  return least;
}

FinalActivation final_activation(const ModelOptions& model, std::size_t output) {
  const std::optional<std::size_t> layer = layer_of(model, output);
  if (!layer) return FinalActivation::none;
  const Choice* activation = model.layers[*layer].as<LayerOptions>().final_activation();
  return activation ? final_activation_of(*activation) : FinalActivation::none;
}

}  // namespace trainctl
