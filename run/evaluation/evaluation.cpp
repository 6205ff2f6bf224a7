// Chooses a checkpoint and a split of the data, and evaluates the checkpoint on all ranks.
#include "run/evaluation/evaluation.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/metrics/choices.h"
#include "core/metrics/loss.h"
#include "core/metrics/metric.h"
#include "io/checkpoint/load.h"
#include "io/loader/data.h"
#include "io/metrics/find_run.h"
#include "parallel/checkpoint/restore.h"
#include "parallel/launch/ranks/run_rank.h"
#include "run/job/job.h"
#include "run/job/pretrained.h"
#include "run/job/trained_network.h"
#include "run/run_spec.h"

namespace trainctl {
namespace {

SplitKind split_of(const std::string& name, const Data& data) {
  if (name == "training") return SplitKind::training;
  const SplitKind wanted =
      name == "validation" || (name.empty() && !data.has(SplitKind::test)) ? SplitKind::validation : SplitKind::test;
  if (data.has(wanted)) return wanted;
  throw Error(ErrorKind::config, format("the config has no {} data", name.empty() ? "test or validation" : name),
              "add data.validation or data.test, or choose another split with --data");
}

// Returns the path of the checkpoint to evaluate; "" for the weights that the config names. Warns if its config or
// model differs, since a difference that leaves the tensors alike would not show otherwise.
std::string chosen_checkpoint(const RunSpec& spec, const EvaluationRequest& request) {
  const Node config = Value<RunSpec>::write(spec);
  if (request.checkpoint.empty() && request.run.empty()) {
    if (spec.model.weights && !find_newest_run(spec.name, config).run) return "";
    const RunOfConfig run = newest_run(spec.name, config, request.config_file);
    if (!run.differences.empty()) {
      log::warning(format("{} was trained with a config that differs: {}", run.path, run.differences.front()));
    }
    return best_of_run(run.path);
  }
  const std::string path = request.checkpoint.empty() ? best_of_run(request.run) : request.checkpoint;
  if (const std::vector<std::string> differ = model_differences(path, config); !differ.empty()) {
    log::warning(
        format("{} was trained with a model that differs from {}'s: {}", path, request.config_file, differ.front()));
  }
  return path;
}

}  // namespace

RunSpec with_confusion_matrix(RunSpec spec) {
  ByName<ChoicesOf<metric_choices>> metrics;
  bool added = false;
  const std::vector<std::string> outputs = output_names(spec.model);
  for (const std::string& output : outputs) {
    ChoicesOf<metric_choices> own = spec.train.metrics.of(output);
    const LossRule rule = spec.train.loss.of(output).as<LossOptions>().rule();
    const LossTargets targets = std::visit([](const auto& r) { return r.targets; }, rule);
    // If there are several outputs, those with labels are left out: the number of their labels is not known yet.
    const bool has_classes =
        !is_over_sequences(rule) && (targets == LossTargets::class_numbers || targets == LossTargets::distributions ||
                                     (targets == LossTargets::labels && outputs.size() == 1));
    const bool has_it =
        std::any_of(own.begin(), own.end(), [](const Choice& metric) { return metric.name == ConfusionMatrix::name; });
    if (has_classes && !has_it) own.push_back(default_choice(metric_choices(), ConfusionMatrix::name));
    added = added || has_classes;
    metrics.add(output, std::move(own));
  }
  if (!added)
    throw Error(ErrorKind::config,
                "--confusion requires an output with classes, and no loss of this config is for classes");
  spec.train.metrics = std::move(metrics);
  return spec;
}

EvaluatedCheckpoint evaluate_checkpoint(const RunSpec& config, RunSpec spec, const EvaluationRequest& request,
                                        RankContext& context) {
  World& world = context.world;
  if (world.size() == 1) {  // one rank has no mesh, whatever the network was trained on
    spec.strategy = for_one_rank(spec.strategy);
    // Logical shards are cut from the batch of all ranks together, which must not depend on the number of ranks.
    if (!spec.train.batch_size_per_rank) spec.strategy.reproducible = config.strategy.reproducible;
  }
  RankDevice device = open_device(spec.cluster, spec.train, spec.strategy, context);
  std::optional<LoadedCheckpoint> checkpoint;
  if (world.rank() == 0) {
    if (const std::string path = chosen_checkpoint(config, request); !path.empty()) {
      checkpoint = load_named_checkpoint(path);
      log::info(format("evaluates {} (step {})", checkpoint->path, checkpoint->manifest.step));
    } else {
      begin_untrained(config, request.config_file);
    }
    if (spec.strategy.automatic) log::info("`strategy: auto` is for training: evaluates with data parallelism");
  }
  const Data data(spec.data, spec.seed, data_use(spec));
  const SplitKind split = split_of(request.split, data);
  DataInfo info = data.info();
  info.training_samples = 0;
  info.validation_samples = data.samples(split);
  std::optional<NetworkWeights> pretrained;
  if (world.rank() == 0 && !checkpoint) {
    pretrained = load_untrained(spec, info.inputs);
    checkpoint = std::move(pretrained->checkpoint);
  }
  Job job(spec, info, device, world, {}, "");

  RestoreSource stored;
  if (checkpoint) stored = {&checkpoint->snapshot, checkpoint->path, request.config_file};
  restore_weights(stored, job.engine(), world.communicator(), device.host);

  const std::int64_t batch = evaluation_batch(spec.train.global_batch(world.size()), job.division());
  const auto source = data.evaluation(split, batch, evaluation_division(job.division()), context.threads,
                                      job.target_encodings(), job.batch_memory());
  context.end_start();
  EvaluatedCheckpoint result;
  result.found = *evaluate(job.engine(), job.programs(), *source, world.communicator(), device.host);
  result.samples = info.validation_samples;
  if (checkpoint) {
    result.checkpoint = checkpoint->path;
    result.class_names = read_class_names(checkpoint->manifest.metadata);
    if (result.class_names.empty()) result.class_names = info.targets[0].class_names;
  }
  return result;
}

}  // namespace trainctl
