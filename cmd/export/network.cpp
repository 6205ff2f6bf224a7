// From a run's config and what its checkpoint kept to a graph.
#include "cmd/export/network.h"

#include <optional>

#include "cmd/export/preprocessing.h"
#include "cmd/predict/meaning.h"
#include "core/graph/ops/elementwise/activations.h"
#include "core/graph/ops/elementwise/softmax.h"
#include "core/layers/model/model.h"
#include "io/loader/data.h"
#include "io/loader/kept_plan.h"

namespace trainctl {
namespace {

// Of samples behind the transforms: values, or tokens.
ModelInput transformed_input(ModelInput input) {
  input.format = {input.format.dtype == DType::int32 ? DType::int32 : DType::float32, {}, {}};
  return input;
}

// What the checkpoint kept of the model's only input; nothing where the model has several.
std::optional<KeptInput> kept_of(const std::map<std::string, std::string>& facts) {
  const auto found = facts.find(kept_input_fact);
  if (found == facts.end()) return {};
  return read_kept_input(found->second);
}

std::vector<ModelInput> transformed_inputs(const RunSpec& spec, const std::string& name,
                                           const std::optional<KeptInput>& kept) {
  std::vector<ModelInput> inputs;
  if (kept) {
    const TransformPlan plan = kept_plan(spec.data, name, *kept, kept->facts.dtype).plan;
    const Shape sample = shape_behind(shape_behind(kept->facts.sample, plan.fixed), plan.augment);
    inputs.push_back(transformed_input({name, sample, {kept->facts.dtype, {}, {}}}));
  } else {
    for (const ModelInput& input : describe(spec.data, spec.seed, data_use(spec)).inputs) {
      inputs.push_back(transformed_input(input));
    }
  }
  return inputs;
}

// Appends what the loss of an output applies and the network does not end in.
void append_missing(const RunSpec& spec, std::size_t output, Graph& graph) {
  TensorId& end = graph.outputs[output];
  const FinalActivation missing = missing_activation(spec, output);
  if (missing == FinalActivation::softmax) {
    end = graph.add_op(std::make_shared<Softmax>(), {end}, "predictions", {})[0];
  } else if (missing == FinalActivation::sigmoid) {
    const ActivationFunction sigmoid{ActivationKind::sigmoid};
    end = graph.add_op(std::make_shared<Activation>(sigmoid), {end}, "predictions", {})[0];
  }
}

}  // namespace

ExportedNetwork exported_network(const RunSpec& spec, const std::map<std::string, std::string>& facts,
                                 bool preprocess) {
  const std::string name = input_names(spec.model)[0];
  const std::optional<KeptInput> kept = kept_of(facts);
  if (preprocess && !kept) {
    throw Error(ErrorKind::config, "--preprocess is for networks of one input, whose checkpoint keeps how it is read",
                "export without it");
  }
  std::optional<StoredInput> stored;
  BuildOptions options;
  options.training = false;
  if (preprocess) {
    stored = stored_input(spec.data, name, *kept);
    options.inputs = {stored->input};
  } else {
    options.inputs = transformed_inputs(spec, name, kept);
  }
  Reader reader;
  ExportedNetwork network{build_model(spec.model, options, reader).graph, output_names(spec.model)};
  reader.throw_if_failed();
  if (stored) prepend_crop(network.graph, *stored);
  for (std::size_t i = 0; i < network.outputs.size(); ++i) {
    append_missing(spec, i, network.graph);
    if (network.outputs[i].empty()) network.outputs[i] = "output";
  }
  return network;
}

}  // namespace trainctl
