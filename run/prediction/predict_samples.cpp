// Reads samples as the trained network's run did, shares them among the ranks, and writes the predictions on rank 0.
#include "run/prediction/predict_samples.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/base/output.h"
#include "core/base/table.h"
#include "io/checkpoint/atomic_file.h"
#include "io/checkpoint/load.h"
#include "io/loader/inputs/input_plan.h"
#include "io/loader/prediction_data.h"
#include "parallel/checkpoint/restore.h"
#include "parallel/comm/text.h"
#include "parallel/launch/ranks/run_rank.h"
#include "run/job/device.h"
#include "run/job/pretrained.h"
#include "run/prediction/meaning.h"
#include "run/prediction/pictures.h"
#include "run/prediction/predictor.h"
#include "run/run_spec.h"

namespace trainctl {
namespace {

// Writes a piece of the predictions. Returns false if the reader of the output has closed it.
using Put = std::function<bool(const std::string& text)>;

// The checkpoint, and how the samples that it was trained on were read.
struct Trained {
  std::optional<NetworkWeights> weights;  // on rank 0
  std::vector<KeptInput> inputs;          // on all ranks
  std::vector<KeptInput> targets;         // on rank 0: of targets that are images
};

Trained load_trained(const RunSpec& spec, const TrainedNetwork& network, std::size_t inputs, RankContext& context,
                     Stream& host) {
  Trained trained;
  std::string kept;
  if (context.world.rank() == 0) {
    trained.weights = network.load(spec, "predicts with the weights of");
    const auto& metadata = trained.weights->checkpoint.manifest.metadata;
    if (const auto found = metadata.find(kept_input_key); found != metadata.end()) kept = found->second;
    if (const auto found = metadata.find(kept_target_key); found != metadata.end()) {
      trained.targets = read_kept_inputs(found->second);
    }
  }
  kept = broadcast_text(kept, 0, context.world.communicator(), host);
  if (!kept.empty()) trained.inputs = read_kept_inputs(kept);
  if (trained.inputs.size() != inputs) {
    throw CollectiveError(
        ErrorKind::data,
        format("{} does not record how its samples were read: an older trainctl wrote it", network.path),
        "continue its training for a step, which writes a checkpoint that does");
  }
  return trained;
}

// Writes the answers to standard output or into the file.
void write_answers(const PredictionRequest& request, std::int64_t samples,
                   const std::function<void(const Put& put)>& write) {
  if (request.file.empty()) return write(request.format == PredictionFormat::npy ? write_output_bytes : write_output);
  write_file(request.file, 0, [&](OutputFile& file) {
    write([&](const std::string& text) {
      file.write(text.data(), std::ssize(text));
      return true;
    });
  });
  log::info(format("{}: {}", request.file, counted(samples, "sample")));
}

OutputMeanings meanings_of(const RunSpec& spec, const std::vector<Shape>& outputs,
                           const std::vector<std::string>& class_names) {
  OutputMeanings meanings;
  for (std::size_t i = 0; i < outputs.size(); ++i) {  // the names are those of the first output's classes
    meanings.push_back(meaning_of(spec, i, outputs[i], i == 0 ? class_names : std::vector<std::string>()));
  }
  return meanings;
}

// The answers of the outputs for sample i of `found`; empty if it could not be read.
Answers answers_of(const OutputMeanings& outputs, const Predictions& found, std::int64_t i) {
  Answers answers;
  if (found.weights[static_cast<std::size_t>(i)] == 0) return answers;
  for (std::size_t k = 0; k < outputs.size(); ++k) answers.push_back(outputs[k].values_of(found.of(k, i)));
  return answers;
}

// The map from bytes to the values of predicted images: that of the targets or, for a network whose target is its
// input, that of the input's files. nullopt if neither are images.
std::optional<Affine> picture_scaling(const RunSpec& spec, const Trained& trained, const PredictionData& data) {
  if (spec.data.target_is_input()) return data.scaling();
  if (trained.targets.empty()) return std::nullopt;
  return kept_target_scaling(spec.data, input_names(spec.model)[0], trained.targets[0]);
}

// Warns if pictures show only the central part of the samples, because `augment` crops them.
void warn_of_crop(const RunSpec& spec, const Trained& trained) {
  const std::string name = input_names(spec.model)[0];
  const TransformPlan plan = kept_plan(spec.data, name, trained.inputs[0], trained.inputs[0].info.dtype).plan;
  const Shape whole = shape_after(trained.inputs[0].info.sample, plan.fixed), cut = shape_after(whole, plan.augment);
  if (whole == cut) return;
  log::warning(
      format("random_crop in `augment` cuts out the centre of each image, {}x{} of {}x{} pixels, which the "
             "pictures show",
             cut[0], cut[1], whole[0], whole[1]));
}

// Throws CollectiveError where PictureWriter() and require_no_input() throw Error.
PictureWriter picture_writer(const RunSpec& spec, const std::string& folder, const OutputMeanings& outputs,
                             const Trained& trained, const PredictionData& data) {
  std::vector<std::string> names, inputs;
  for (std::int64_t i = 0; i < data.samples(); ++i) {
    names.push_back(data.short_name_of(i));
    inputs.push_back(data.name_of(i));
  }
  try {
    PictureWriter writer(folder, outputs, std::move(names), picture_scaling(spec, trained, data));
    writer.require_no_input(inputs);
    return writer;
  } catch (const Error& error) {
    throw CollectiveError(error.kind(), error.what());
  }
}

}  // namespace

void predict_samples(const RunSpec& spec, const PredictionRequest& request, RankContext& context) {
  World& world = context.world;
  RankDevice device = open_device(spec.cluster, spec.train, spec.strategy, context);
  const std::vector<DataUse::Input> inputs = data_use(spec).inputs;
  const Trained trained = load_trained(spec, request.network, inputs.size(), context, device.host);
  const PredictionData data(spec.data, trained.inputs, inputs, request.inputs);
  if (context.world.rank() == 0) {
    for (const std::string& warning : data.warnings()) log::warning(warning);
  }
  const BatchDivision rank(MeshRank(Mesh{.data = world.size()}, world.rank()));
  Backend& backend = *device.backend;
  const std::int64_t batch = std::min(spec.train.global_batch(world.size()), data.samples());
  const auto source =
      data.batches(batch, rank, context.threads, [&](std::int64_t bytes) { return backend.allocate_host(bytes); });
  const LoadedCheckpoint* checkpoint = trained.weights ? &trained.weights->checkpoint : nullptr;
  RestoreSource stored;
  if (checkpoint != nullptr) stored = {&checkpoint->snapshot, checkpoint->path, request.network.config()};
  Predictor predictor(spec, data.inputs(), *source, rank, device, stored, world);
  std::vector<std::string> names;  // names of the first output's classes, on rank 0
  if (checkpoint != nullptr) names = read_class_names(checkpoint->manifest.metadata);
  const OutputMeanings outputs = meanings_of(spec, predictor.outputs(), names);
  const auto pictures =
      request.folder.empty()
          ? std::nullopt
          : std::optional<PictureWriter>(picture_writer(spec, request.folder, outputs, trained, data));
  if (pictures && world.rank() == 0) warn_of_crop(spec, trained);
  context.end_start();
  if (world.rank() != 0) {
    predictor.run(*source, {});
    return;
  }
  const auto writer = make_writer(request.format, outputs, data.samples(), checkpoint->path);
  write_answers(request, data.samples(), [&](const Put& put) {
    bool taken = put(writer->head());
    predictor.run(*source, [&](const Predictions& found) {
      std::string text;
      for (std::int64_t i = 0; i < found.count; ++i) {
        const Answers answers = answers_of(outputs, found, i);
        if (pictures) pictures->write(found.first + i, answers);
        text += writer->sample(data.name_of(found.first + i), answers);
      }
      taken = taken && put(text);
      return taken || pictures;
    });
    if (taken) put(writer->tail());
  });
  if (pictures) log::info(format("{}: {}", request.folder, counted(data.samples(), "sample")));
}

}  // namespace trainctl
