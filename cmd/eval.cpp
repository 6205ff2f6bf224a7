// trainctl eval: the metrics of a trained network on the test or validation data.
#include <CLI/CLI.hpp>
#include <filesystem>

#include "cmd/run/job.h"
#include "cmd/subcommands.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/json_fwd.h"
#include "core/base/log.h"
#include "core/base/table.h"
#include "io/checkpoint/load.h"
#include "io/loader/data.h"
#include "io/metrics/find_run.h"
#include "parallel/launch/report.h"
#include "parallel/trainer/evaluate.h"
#include "parallel/trainer/part_plan.h"
#include "parallel/trainer/restore.h"

namespace trainctl {
namespace {

struct EvalOptions {
  CommonOptions common;
  LaunchFlags launch;
  std::string checkpoint;
  std::string run;
  std::string part;
};

PartKind part_of(const std::string& name, const Data& data) {
  if (name == "training") return PartKind::training;
  const PartKind wanted =
      name == "validation" || (name.empty() && !data.has(PartKind::test)) ? PartKind::validation : PartKind::test;
  if (data.has(wanted)) return wanted;
  throw Error(ErrorKind::config, format("the config has no {} data", name.empty() ? "test or validation" : name),
              "add data.validation or data.test, or choose another part with --data");
}

// The run's best checkpoint, or its last where none was found best.
std::string best_of_run(const std::string& run) {
  const std::string best = run + "/checkpoints/best", last = run + "/checkpoints/last";
  std::error_code ignored;
  if (std::filesystem::is_directory(best, ignored)) return best;
  log::info(format("{} has no best checkpoint: its last one is read", run));
  return std::filesystem::is_directory(last, ignored) ? last : run;
}

// Which checkpoint is meant. A difference in the model that leaves the tensors alike is warned of.
std::string chosen_checkpoint(const RunSpec& spec, const EvalOptions& options) {
  const Node config = Value<RunSpec>::write(spec);
  if (options.checkpoint.empty() && options.run.empty()) {
    const RunOfConfig run = newest_run(spec.name, config, options.common.config);
    if (!run.differences.empty()) {
      log::warning(format("{} is of a config that differs: {}", run.path, run.differences.front()));
    }
    return best_of_run(run.path);
  }
  const std::string path = options.checkpoint.empty() ? best_of_run(options.run) : options.checkpoint;
  if (const std::vector<std::string> differ = model_differences(path, config); !differ.empty()) {
    log::warning(
        format("{} was trained with a model that differs from {}'s: {}", path, options.common.config, differ.front()));
  }
  return path;
}

// A table of classes by classes: a line for each target, a column for each prediction. Without names of all classes
// they have numbers.
std::string text_of(const std::string& name, const Table& counts, std::vector<std::string> classes) {
  if (classes.size() != counts.size()) {
    classes.clear();
    for (std::size_t k = 0; k < counts.size(); ++k) classes.push_back(std::to_string(k));
  }
  std::vector<TextTable::Column> columns{{name}};
  for (const std::string& predicted : classes) columns.push_back({predicted, TextTable::Align::right});
  TextTable table(columns);
  for (std::size_t k = 0; k < counts.size(); ++k) {
    std::vector<std::string> cells{classes[k]};
    for (const double count : counts[k]) cells.push_back(format("{:.6g}", count));
    table.add(std::move(cells));
  }
  return table.text() + "rows are targets, columns are predictions\n";
}

int evaluate_checkpoint(const RunSpec& stated, const EvalOptions& options, RankContext& context) {
  World& world = context.world;
  RunSpec spec = stated;
  if (world.size() == 1) {  // whatever mesh the network was trained on
    spec.strategy = for_one_rank(spec.strategy);
    // Logical shards are cut from a batch of all ranks, whose number the batch must not depend on.
    if (!spec.train.batch_size_per_rank) spec.strategy.reproducible = stated.strategy.reproducible;
  }
  RankDevice device = open_device(spec.cluster, spec.train, spec.strategy, context);
  std::optional<LoadedCheckpoint> checkpoint;
  if (world.rank() == 0) {
    checkpoint = load_named_checkpoint(chosen_checkpoint(stated, options));
    log::info(format("evaluates {} (step {})", checkpoint->path, checkpoint->manifest.step));
    if (spec.strategy.automatic) log::info("`strategy: auto` is for training: evaluates with data parallelism");
  }
  const Data data(spec.data, spec.seed, data_use(spec));
  const PartKind part = part_of(options.part, data);
  DataInfo info = data.info();
  info.training_samples = 0;
  info.validation_samples = data.samples(part);
  Job job(spec, info, device, world, {}, "");

  Engine& engine = job.engine();
  engine.download();
  RestoreSource stored;
  if (checkpoint) stored = {&checkpoint->snapshot, checkpoint->path, options.common.config};
  const SnapshotPlan plan = plan_snapshot(engine.weights(), {}, world.communicator(), device.host);
  restore_weights(stored, plan.weights, engine.weights(), world.communicator(), device.host);
  engine.upload();

  const std::int64_t batch = evaluation_batch(spec.train.global_batch(world.size()), job.sharer());
  const auto source = data.evaluation(part, batch, evaluation_sharer(job.sharer()), context.threads, job.target_forms(),
                                      job.batch_memory());
  const Evaluation found = *evaluate(engine, job.programs(), *source, world.communicator(), device.host);
  if (world.rank() != 0) return 0;
  if (options.common.json) {
    Json json = json_numbers(found.values);
    for (const auto& [name, table] : found.tables) json[name] = table;
    answer(json_line(json));
    return 0;
  }
  std::string text = format("{}, {} samples\n", checkpoint->path, info.validation_samples);
  for (const auto& [name, value] : found.values) text += format("{} {:.6g}\n", name, value);
  const std::vector<std::string> names = read_class_names(checkpoint->manifest.facts);
  for (const auto& [name, table] : found.tables) text += "\n" + text_of(name, table, names);
  answer(text);
  return 0;
}

int run_eval(EvalOptions& options) {
  const RunSpec spec = load_run_spec(options.common, options.launch);
  const Situation situation = find_situation(Variables::of_process());
  if (const std::optional<int> code = supervise_ranks(spec.cluster, options.launch, launched_config(options.common),
                                                      situation, {false, options.common.json}))
    return *code;
  const RankCommand command = rank_command("eval", Value<RunSpec>::write(spec), spec.cluster, options.launch,
                                           {{"--data", options.part.empty() ? "not given" : options.part}});
  return run_as_rank(situation, options.common.json, command,
                     [&](RankContext& context) { return evaluate_checkpoint(spec, options, context); });
}

}  // namespace

Subcommand eval_subcommand() {
  return {"eval", "Evaluates a checkpoint on the config's test or validation data",
          "trainctl eval configs/mnist-cnn.yaml --checkpoint runs/mnist-cnn/checkpoints/best", [](CLI::App& app) {
            auto options = std::make_shared<EvalOptions>();
            add_config_options(app, options->common);
            add_output_options(app, options->common);
            add_launch_options(app, options->launch);
            app.add_option("--checkpoint", options->checkpoint,
                           "A checkpoint's folder; default: the best of the config's newest run, or its last")
                ->type_name("PATH");
            app.add_option("--run", options->run, "A run directory, in place of the config's newest run")
                ->excludes("--checkpoint")
                ->type_name("PATH");
            app.add_option("--data", options->part, "Which data: test (where there is some), validation or training")
                ->check(CLI::IsMember({"test", "validation", "training"}));
            return [options] { return run_eval(*options); };
          }};
}

}  // namespace trainctl
