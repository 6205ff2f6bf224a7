// Builds a graph from a run's config and the metadata of its checkpoint.
#include "run/export/network.h"

#include <optional>

#include "core/base/format.h"
#include "core/graph/ops/elementwise/activations.h"
#include "core/graph/ops/elementwise/softmax.h"
#include "core/layers/model/model.h"
#include "io/datasets/tables/csv_table.h"
#include "io/loader/data.h"
#include "io/loader/inputs/input_plan.h"
#include "run/prediction/meaning.h"
#include "run/run_spec.h"

namespace trainctl {
namespace {

constexpr const char* without = "export without --preprocess, and apply the transforms before the network";

using Kind = GeometryStep::Kind;

// The borders that a crop to the middle of an image of this shape removes.
Borders crop_to(const GeometryStep& step, const Shape& image) {
  Borders borders;
  const std::array<std::int64_t, 2> sizes{step.height, step.width};
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const std::int64_t left = image[static_cast<std::int64_t>(axis)] - sizes[axis];
    if (left < 0) throw Error(ErrorKind::config, step.location, "this crop is larger than the image", without);
    borders.before[axis] = left / 2;
    borders.after[axis] = left - left / 2;
  }
  return borders;
}

// The input for transformed samples: values, or tokens.
ModelInput transformed_input(ModelInput input) {
  input.format = {input.format.dtype == DType::int32 ? DType::int32 : DType::float32, {}, {}};
  return input;
}

// How the training samples of the model's inputs were read; empty if an older trainctl wrote the checkpoint.
std::vector<KeptInput> kept_of(const SnapshotMetadata& metadata) {
  const auto found = metadata.find(kept_input_key);
  return found == metadata.end() ? std::vector<KeptInput>() : read_kept_inputs(found->second);
}

// Appends the activation that is fused into the loss of an output, if the network does not end in it.
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

StoredInput stored_input(const DataOptions& options, const std::string& name, const KeptInput& kept) {
  if (kept.info.table) {
    throw Error(ErrorKind::config,
                "--preprocess: a network of numbers cannot represent the words and missing values of a table",
                "export without it: the network then accepts the standardized numbers of the columns");
  }
  const InputPlan plan = kept_plan(options, name, kept, kept.info.dtype);
  StoredInput result{kept.info.sample, kept.info.dtype, false, {}, {name, kept.info.sample, {kept.info.dtype, {}, {}}}};
  Shape& image = result.input.sample;
  for (const auto* steps : {&plan.plan.fixed, &plan.plan.augment}) {
    for (const GeometryStep& step : *steps) {
      if (step.kind == Kind::spectrogram) {
        throw Error(ErrorKind::config, step.location,
                    "--preprocess: a network in ONNX does not compute mel spectrograms", without);
      }
      if (step.kind == Kind::center_crop || step.kind == Kind::random_crop) {
        result.steps.push_back({crop_to(step, image)});
        image = {step.height, step.width, image[2]};
      } else if (step.kind == Kind::resize || step.kind == Kind::resize_short) {
        result.any_size = result.any_size || (result.steps.empty() && step.kind == Kind::resize);
        image = shape_after(image, {step});
        result.steps.push_back({{}, image[0], image[1]});
        result.input.format.dtype = DType::float32;
      }
    }
  }
  if (kept.info.dtype == DType::int32) return result;
  const Affine& affine = plan.plan.affine;
  check_channels(affine, image.rank() == 0 ? 1 : image.back());
  result.input.format.scale = {affine.scale.begin(), affine.scale.end()};
  result.input.format.offset = {affine.offset.begin(), affine.offset.end()};
  return result;
}

std::optional<StoredInput> only_stored_input(const RunSpec& spec, const SnapshotMetadata& metadata) {
  const std::vector<KeptInput> kept = kept_of(metadata);
  if (kept.size() != 1) return std::nullopt;
  return stored_input(spec.data, input_names(spec.model)[0], kept[0]);
}

std::vector<ModelInput> transformed_inputs(const RunSpec& spec, const SnapshotMetadata& metadata) {
  const std::vector<KeptInput> kept = kept_of(metadata);
  std::vector<ModelInput> inputs;
  const std::vector<std::string> names = input_names(spec.model);
  if (kept.size() == names.size()) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      const DatasetInfo& info = kept[i].info;
      const TransformPlan plan = kept_plan(spec.data, names[i], kept[i], info.dtype).plan;
      const Shape sample = shape_after(shape_after(info.sample, plan.fixed), plan.augment);
      inputs.push_back(transformed_input({names[i], sample, {info.dtype, {}, {}}}));
    }
  } else {
    for (const ModelInput& input : describe(spec.data, spec.seed, data_use(spec)).inputs) {
      inputs.push_back(transformed_input(input));
    }
  }
  return inputs;
}

ExportedNetwork exported_network(const RunSpec& spec, const SnapshotMetadata& metadata, bool preprocess) {
  BuildOptions options;
  std::optional<StoredInput> stored;
  options.training = false;
  if (preprocess) stored = only_stored_input(spec, metadata);
  if (preprocess && !stored) {
    throw Error(ErrorKind::config,
                "--preprocess requires a network of one input and a checkpoint that records how it is read",
                "export without it");
  }
  if (stored) {
    options.inputs = {stored->input};
  } else {
    options.inputs = transformed_inputs(spec, metadata);
  }
  Reader reader;
  BuiltModel built = build_model(spec.model, options, reader);
  ExportedNetwork network{std::move(built.graph), output_names(spec.model), std::move(built.layers),
                          std::move(built.blocks), stored};
  reader.throw_if_failed();
  for (std::size_t i = 0; i < network.outputs.size(); ++i) {
    append_missing(spec, i, network.graph);
    if (network.outputs[i].empty()) network.outputs[i] = "output";
  }
  return network;
}

}  // namespace trainctl
