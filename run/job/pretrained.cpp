// Checks and loads the weights that a network begins with.
#include "run/job/pretrained.h"

#include <algorithm>
#include <utility>

#include "core/program/teachers.h"
#include "io/loader/data.h"
#include "io/loader/inputs/input_plan.h"
#include "io/weights/load_all.h"
#include "run/job/job.h"
#include "run/run_spec.h"

namespace trainctl {
namespace {

Graph whole_network(const RunSpec& spec, const std::vector<ModelInput>& inputs) {
  Reader reader;
  Graph graph = build_model(spec.model, {.inputs = inputs, .training = false}, reader).graph;
  reader.throw_if_failed();
  return graph;
}

// How the config alone describes the inputs of the model.
std::vector<KeptInput> described_inputs(const RunSpec& spec) {
  DataUse use = data_use(spec);
  for (DataUse::Target& target : use.targets) target.unused = true;
  std::vector<KeptInput> kept;
  for (const ModelInput& input : describe(spec.data, spec.seed, use).inputs) {
    KeptInput& added = kept.emplace_back();
    added.info.sample = input.sample;
    added.info.dtype = spec.data.dataset.as<DatasetOptions>().holds_image_files() ? DType::uint8 : input.format.dtype;
  }
  return kept;
}

// Whether the training data is here and says more about the inputs than the config does.
bool reads_data(const RunSpec& spec) {
  const auto& dataset = spec.data.dataset.as<DatasetOptions>();
  const bool is_language_model = dataset.knows_text() && dataset.predicts_positions();
  const bool names_no_data =
      (dataset.known_shape() || dataset.holds_image_files()) && dataset.pieces().front().path.text.empty();
  return !is_language_model && !names_no_data && is_here(spec.data);
}

}  // namespace

void check_pretrained(const RunSpec& spec, const DataInfo& data) {
  if (spec.model.weights) check_weights(*spec.model.weights, whole_network(spec, data.inputs));
}

std::optional<LoadedWeights> load_pretrained(const RunSpec& spec, const DataInfo& data) {
  if (!spec.model.weights) return std::nullopt;
  const std::vector<ProgramSpec::Teacher> teachers = program_spec(spec, data).teachers;
  const auto followed = [&](const std::string& name) {
    std::string of;
    for (const ProgramSpec::Teacher& teacher : teachers) {
      if (of.empty()) of = followed_by(teacher, name);
    }
    return of;
  };
  return load_weights(*spec.model.weights, whole_network(spec, data.inputs), spec.seed, followed);
}

NetworkWeights load_untrained(const RunSpec& spec, const std::vector<ModelInput>& inputs) {
  LoadedWeights loaded = load_all_weights(*spec.model.weights, whole_network(spec, inputs));
  NetworkWeights weights;
  weights.checkpoint.path = std::move(loaded.path);
  weights.checkpoint.snapshot = std::move(loaded.snapshot);
  weights.memory = std::move(loaded.memory);
  return weights;
}

NetworkWeights load_untrained(const RunSpec& spec) {
  SnapshotMetadata metadata;
  std::vector<KeptInput> kept;
  if (reads_data(spec)) {
    const Data data(spec.data, spec.seed, data_use(spec));
    kept = data.kept_inputs();
    if (!data.kept_targets().empty()) metadata[kept_target_key] = write_kept_inputs(data.kept_targets());
    const std::vector<std::string>& names = data.info().targets[0].class_names;
    if (!names.empty()) metadata[class_names_key] = write_class_names(names);
  } else {
    kept = described_inputs(spec);
  }
  std::vector<ModelInput> inputs;
  const std::vector<std::string> names = input_names(spec.model);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const DatasetInfo& info = kept[i].info;
    const TransformPlan plan = kept_plan(spec.data, names[i], kept[i], info.dtype).plan;
    const Shape sample = shape_after(shape_after(info.sample, plan.fixed), plan.augment);
    inputs.push_back({names[i], sample, {info.dtype == DType::int32 ? DType::int32 : DType::float32, {}, {}}});
  }
  metadata[kept_input_key] = write_kept_inputs(kept);
  NetworkWeights weights = load_untrained(spec, inputs);
  weights.checkpoint.manifest.metadata = weights.checkpoint.snapshot.metadata = metadata;
  return weights;
}

}  // namespace trainctl
