// trainctl eval: computes the metrics of a trained network on test, validation or training data.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cmd/common_options.h"
#include "cmd/one_of.h"
#include "cmd/subcommands.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/log.h"
#include "core/base/table.h"
#include "parallel/launch/plan.h"
#include "parallel/launch/ranks/report.h"
#include "parallel/launch/ranks/run_rank.h"
#include "parallel/launch/start_ranks.h"
#include "run/config_use.h"
#include "run/evaluation/evaluation.h"
#include "run/evaluation/thresholds.h"
#include "run/job/prepared_data.h"
#include "run/run_spec.h"

namespace trainctl {
namespace {

struct EvalOptions {
  CommonOptions common;
  LaunchFlags launch;
  EvaluationRequest request;
  bool confusion = false;
  std::vector<std::string> thresholds;  // METRIC=VALUE
};

void tell(const EvaluatedCheckpoint& evaluated, const std::vector<Threshold>& thresholds, bool json) {
  const Evaluation& found = evaluated.found;
  for (const auto& [metric, remark] : found.remarks) log::warning(format("{} {}", metric, remark));
  if (json) {
    Json document = to_json(found, evaluated.class_names);
    if (!thresholds.empty()) document["thresholds"] = to_json(thresholds, found.values);
    answer(json_line(document));
    return;
  }
  answer(format("{}, {}\n", evaluated.checkpoint, counted(evaluated.samples, "sample")) +
         to_text(found, evaluated.class_names));
  for (const Threshold& threshold : thresholds) {
    const double value = found.values.at(threshold.metric);
    if (!threshold.is_met(value)) log::error(threshold.text_of_miss(value));
  }
}

int run_eval(EvalOptions& options) {
  const RunSpec spec = load_run_spec(options.common, options.launch, ConfigUse::evaluation);
  const std::vector<Threshold> thresholds = read_thresholds(options.thresholds, spec);
  const RunSpec evaluated = options.confusion ? with_confusion_matrix(spec) : spec;
  const Situation situation = find_situation(Variables::of_process());
  prepare_data_with_progress(spec.data);
  const bool json = options.common.json;
  if (const std::optional<int> code =
          supervise_ranks(spec.cluster, options.launch, launched_config(options.common), situation, {false, json}))
    return *code;
  options.request.config_file = options.common.config;
  const std::string& split = options.request.split;
  RankCommand command = rank_command("eval", Value<RunSpec>::write(spec), spec.cluster, options.launch,
                                     {{"--data", split.empty() ? "not given" : split}});
  command.ends_start_itself = true;
  return run_as_rank(situation, json, command, [&](RankContext& context) {
    const EvaluatedCheckpoint found = evaluate_checkpoint(spec, evaluated, options.request, context);
    if (context.world.rank() == 0) tell(found, thresholds, json);
    const bool met = std::all_of(thresholds.begin(), thresholds.end(),
                                 [&](const Threshold& t) { return t.is_met(found.found.values.at(t.metric)); });
    return met ? 0 : exit_code(ErrorKind::answer_is_no);
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
               "--checkpoint", options->request.checkpoint,
               "A checkpoint's folder; default: the best checkpoint of the config's newest run, or its last one")
            ->type_name("PATH");
        app.add_option("--run", options->request.run, "A run directory, instead of the config's newest run")
            ->excludes("--checkpoint")
            ->type_name("PATH");
        app.add_option("--data", options->request.split,
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
