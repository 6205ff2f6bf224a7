// trainctl eval: computes the metrics of a trained network on test, validation or training data.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cmd/common_options.h"
#include "cmd/eval/answer.h"
#include "cmd/one_of.h"
#include "cmd/subcommands.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/json_fwd.h"
#include "core/base/log.h"
#include "core/base/table.h"
#include "core/metrics/choices.h"
#include "core/metrics/loss.h"
#include "core/metrics/metric.h"
#include "core/metrics/monitor.h"
#include "core/spec/reader.h"
#include "core/spec/units.h"
#include "io/checkpoint/load.h"
#include "io/loader/data.h"
#include "io/metrics/find_run.h"
#include "parallel/checkpoint/restore.h"
#include "parallel/launch/plan.h"
#include "parallel/launch/ranks/report.h"
#include "parallel/launch/ranks/run_rank.h"
#include "parallel/launch/start_ranks.h"
#include "parallel/trainer/evaluate.h"
#include "run/job/job.h"
#include "run/job/prepared_data.h"
#include "run/job/trained_network.h"
#include "run/run_spec.h"

namespace trainctl {
namespace {

struct EvalOptions {
  CommonOptions common;
  LaunchFlags launch;
  std::string checkpoint;
  std::string run;
  std::string split;
  bool confusion = false;
  std::vector<std::string> thresholds;  // METRIC=VALUE
};

// A bound on a metric: the smallest accepted value if larger is better, else the largest one.
struct Threshold {
  std::string metric;
  double bound = 0;
  MonitorMode mode = MonitorMode::minimum;  // of the metric

  bool is_met(double value) const;
  // Describes a value that does not meet the bound: "accuracy 0.931 is not at least 0.97".
  std::string text_of_miss(double value) const;
};

bool Threshold::is_met(double value) const { return mode == MonitorMode::maximum ? value >= bound : value <= bound; }

std::string Threshold::text_of_miss(double value) const {
  const char* sense = mode == MonitorMode::maximum ? "at least" : "at most";
  return format("{} {:.6g} is not {} {:.6g}", metric, value, sense, bound);
}

// Reads texts METRIC=VALUE, whose metrics must be results of the config. Throws Error{config} that lists all errors.
std::vector<Threshold> read_thresholds(const std::vector<std::string>& texts, const RunSpec& spec) {
  const std::vector<std::string> results = spec.train.result_names(spec.model);
  const GivenModes modes = spec.train.given_modes(output_names(spec.model));
  std::vector<Threshold> thresholds;
  std::string problems;
  for (const std::string& text : texts) {
    const auto problem = [&](const std::string& what) {
      problems += format("{}--threshold {}: {}", problems.empty() ? "" : "\n", text, what);
    };
    const std::size_t equals = text.find('=');
    const std::string metric = text.substr(0, equals);
    const std::optional<double> bound =
        equals == std::string::npos ? std::nullopt : parse_number(text.substr(equals + 1));
    if (!bound || !std::isfinite(*bound)) {
      problem("a threshold is METRIC=VALUE, such as accuracy=0.97");
    } else if (std::find(results.begin(), results.end(), metric) == results.end()) {
      problem(format("'{}' is no metric of this config; use {}", metric, join_or(results)));
    } else if (const std::optional<MonitorMode> mode = mode_of(metric, modes)) {
      thresholds.push_back({metric, *bound, *mode});
    } else {
      problem(why_without_mode(metric));
    }
  }
  if (!problems.empty()) throw Error(ErrorKind::config, problems);
  return thresholds;
}

// Returns {"accuracy": {"bound": 0.97, "met": false}}, by metric. `values` must have a value for each metric.
Json to_json(const std::vector<Threshold>& thresholds, const std::map<std::string, double>& values) {
  Json json = Json::object();
  for (const Threshold& threshold : thresholds) {
    json[threshold.metric] = {{"bound", threshold.bound}, {"met", threshold.is_met(values.at(threshold.metric))}};
  }
  return json;
}

SplitKind split_of(const std::string& name, const Data& data) {
  if (name == "training") return SplitKind::training;
  const SplitKind wanted =
      name == "validation" || (name.empty() && !data.has(SplitKind::test)) ? SplitKind::validation : SplitKind::test;
  if (data.has(wanted)) return wanted;
  throw Error(ErrorKind::config, format("the config has no {} data", name.empty() ? "test or validation" : name),
              "add data.validation or data.test, or choose another split with --data");
}

// Returns the path of the checkpoint to evaluate. Warns if its config or model differs, since a difference that leaves
// the tensors alike would not show otherwise.
std::string chosen_checkpoint(const RunSpec& spec, const EvalOptions& options) {
  const Node config = Value<RunSpec>::write(spec);
  if (options.checkpoint.empty() && options.run.empty()) {
    const RunOfConfig run = newest_run(spec.name, config, options.common.config);
    if (!run.differences.empty()) {
      log::warning(format("{} was trained with a config that differs: {}", run.path, run.differences.front()));
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

// Adds the confusion matrix to the metrics of each output that has classes. Throws Error{config} if no output has.
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

void tell(const Evaluation& found, const LoadedCheckpoint& checkpoint, std::int64_t samples,
          const std::vector<Threshold>& thresholds, bool json) {
  const ClassNames names = read_class_names(checkpoint.manifest.metadata);
  if (json) {
    Json document = to_json(found, names);
    if (!thresholds.empty()) document["thresholds"] = to_json(thresholds, found.values);
    answer(json_line(document));
    return;
  }
  answer(format("{}, {}\n", checkpoint.path, counted(samples, "sample")) + to_text(found, names));
  for (const Threshold& threshold : thresholds) {
    const double value = found.values.at(threshold.metric);
    if (!threshold.is_met(value)) log::error(threshold.text_of_miss(value));
  }
}

// `config` is the config of the user; `spec` may have a confusion matrix added to its metrics.
int evaluate_checkpoint(const RunSpec& config, RunSpec spec, const EvalOptions& options,
                        const std::vector<Threshold>& thresholds, RankContext& context) {
  World& world = context.world;
  if (world.size() == 1) {  // one rank has no mesh, whatever the network was trained on
    spec.strategy = for_one_rank(spec.strategy);
    // Logical shards are cut from the batch of all ranks together, which must not depend on the number of ranks.
    if (!spec.train.batch_size_per_rank) spec.strategy.reproducible = config.strategy.reproducible;
  }
  RankDevice device = open_device(spec.cluster, spec.train, spec.strategy, context);
  std::optional<LoadedCheckpoint> checkpoint;
  if (world.rank() == 0) {
    checkpoint = load_named_checkpoint(chosen_checkpoint(config, options));
    log::info(format("evaluates {} (step {})", checkpoint->path, checkpoint->manifest.step));
    if (spec.strategy.automatic) log::info("`strategy: auto` is for training: evaluates with data parallelism");
  }
  const Data data(spec.data, spec.seed, data_use(spec));
  const SplitKind split = split_of(options.split, data);
  DataInfo info = data.info();
  info.training_samples = 0;
  info.validation_samples = data.samples(split);
  Job job(spec, info, device, world, {}, "");

  RestoreSource stored;
  if (checkpoint) stored = {&checkpoint->snapshot, checkpoint->path, options.common.config};
  restore_weights(stored, job.engine(), world.communicator(), device.host);

  const std::int64_t batch = evaluation_batch(spec.train.global_batch(world.size()), job.division());
  const auto source = data.evaluation(split, batch, evaluation_division(job.division()), context.threads,
                                      job.target_encodings(), job.batch_memory());
  const Evaluation found = *evaluate(job.engine(), job.programs(), *source, world.communicator(), device.host);
  if (checkpoint) tell(found, *checkpoint, info.validation_samples, thresholds, options.common.json);
  const bool met = std::all_of(thresholds.begin(), thresholds.end(),
                               [&](const Threshold& t) { return t.is_met(found.values.at(t.metric)); });
  return met ? 0 : exit_code(ErrorKind::answer_is_no);
}

int run_eval(EvalOptions& options) {
  const RunSpec spec = load_run_spec(options.common, options.launch);
  const std::vector<Threshold> thresholds = read_thresholds(options.thresholds, spec);
  const RunSpec evaluated = options.confusion ? with_confusion_matrix(spec) : spec;
  const Situation situation = find_situation(Variables::of_process());
  prepare_data_with_progress(spec.data);
  if (const std::optional<int> code = supervise_ranks(spec.cluster, options.launch, launched_config(options.common),
                                                      situation, {false, options.common.json}))
    return *code;
  const RankCommand command = rank_command("eval", Value<RunSpec>::write(spec), spec.cluster, options.launch,
                                           {{"--data", options.split.empty() ? "not given" : options.split}});
  return run_as_rank(situation, options.common.json, command, [&](RankContext& context) {
    return evaluate_checkpoint(spec, evaluated, options, thresholds, context);
  });
}

}  // namespace

Subcommand eval_subcommand() {
  return {
      "eval", "Evaluates a checkpoint on the config's test or validation data",
      "trainctl eval mnist.yaml --checkpoint runs/mnist/checkpoints/best\n"
      "  trainctl eval mnist.yaml --threshold accuracy=0.97",
      [](CLI::App& app) {
        auto options = std::make_shared<EvalOptions>();
        add_config_options(app, options->common);
        add_output_options(app, options->common);
        add_launch_options(app, options->launch);
        app.add_option(
               "--checkpoint", options->checkpoint,
               "A checkpoint's folder; default: the best checkpoint of the config's newest run, or its last one")
            ->type_name("PATH");
        app.add_option("--run", options->run, "A run directory, instead of the config's newest run")
            ->excludes("--checkpoint")
            ->type_name("PATH");
        app.add_option("--data", options->split,
                       "The split: test, validation or training; default: test if the config has it, else validation")
            ->check(one_of({"test", "validation", "training"}));
        app.add_flag("--confusion", options->confusion,
                     "Also shows the confusion matrix, and the precision, recall and F1 score of each class");
        app.add_option("--threshold", options->thresholds,
                       "Exits with code 1 if the metric is worse than VALUE: below it, or above it if lower is better "
                       "(repeatable)")
            ->type_name("METRIC=VALUE")
            ->allow_extra_args(false);
        return [options] { return run_eval(*options); };
      }};
}

}  // namespace trainctl
