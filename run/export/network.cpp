// From a run's config and what its checkpoint kept to a graph.
#include "run/export/network.h"

#include <optional>

#include "core/graph/ops/elementwise/activations.h"
#include "core/graph/ops/elementwise/softmax.h"
#include "core/layers/model/model.h"
#include "io/loader/data.h"
#include "io/loader/inputs/input_plan.h"
#include "run/prediction/meaning.h"

namespace trainctl {
namespace {

// Of samples behind the transforms: values, or tokens.
ModelInput transformed_input(ModelInput input) {
  input.format = {input.format.dtype == DType::int32 ? DType::int32 : DType::float32, {}, {}};
  return input;
}

// What the checkpoint kept of the model's inputs; empty where an older trainctl wrote it.
std::vector<KeptInput> kept_of(const std::map<std::string, std::string>& facts) {
  const auto found = facts.find(kept_input_fact);
  return found == facts.end() ? std::vector<KeptInput>() : read_kept_inputs(found->second);
}

std::vector<ModelInput> transformed_inputs(const RunSpec& spec, const std::vector<KeptInput>& kept) {
  std::vector<ModelInput> inputs;
  const std::vector<std::string> names = input_names(spec.model);
  if (kept.size() == names.size()) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      const DatasetFacts& facts = kept[i].facts;
      const TransformPlan plan = kept_plan(spec.data, names[i], kept[i], facts.dtype).plan;
      const Shape sample = shape_behind(shape_behind(facts.sample, plan.fixed), plan.augment);
      inputs.push_back(transformed_input({names[i], sample, {facts.dtype, {}, {}}}));
    }
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
  const std::vector<KeptInput> kept = kept_of(facts);
  if (preprocess && kept.size() != 1) {
    throw Error(ErrorKind::config, "--preprocess is for networks of one input, whose checkpoint keeps how it is read",
                "export without it");
  }
  BuildOptions options;
  std::optional<StoredInput> stored;
  options.training = false;
  if (preprocess) {
    stored = stored_input(spec.data, input_names(spec.model)[0], kept[0]);
    options.inputs = {stored->input};
  } else {
    options.inputs = transformed_inputs(spec, kept);
  }
  Reader reader;
  ExportedNetwork network{build_model(spec.model, options, reader).graph, output_names(spec.model), stored};
  reader.throw_if_failed();
  for (std::size_t i = 0; i < network.outputs.size(); ++i) {
    append_missing(spec, i, network.graph);
    if (network.outputs[i].empty()) network.outputs[i] = "output";
  }
  return network;
}

}  // namespace trainctl
