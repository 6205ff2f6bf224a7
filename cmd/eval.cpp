// trainctl eval: the metrics of a trained network on the test or validation data.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>

#include "cmd/job.h"
#include "cmd/launching.h"
#include "cmd/restore.h"
#include "cmd/subcommands.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "io/loader/data.h"
#include "parallel/trainer/evaluate.h"

namespace trainctl {
namespace {

struct EvalOptions {
  CommonOptions common;
  LaunchFlags launch;
  std::string checkpoint;
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

std::string best_of_run(const RunSpec& spec) {
  std::string path = "runs/" + spec.name + "/checkpoints/best";
  if (std::filesystem::exists(path)) return path;
  throw Error(ErrorKind::data, Place{path}, "there is no such checkpoint",
              "train first (trainctl run), or name a checkpoint (--checkpoint)");
}

int evaluate_checkpoint(const RunSpec& spec, const EvalOptions& options, RankContext& context) {
  World& world = context.world;
  RankDevice device = open_device(spec, context);
  const Data data(spec.data, spec.seed, takes_values(spec.train.loss));
  const PartKind part = part_of(options.part, data);
  DataInfo info = data.info();
  info.training_samples = 0;
  info.validation_samples = data.samples(part);
  Job job(spec, info, device, world, {}, "");

  Engine& engine = job.engine();
  engine.download();
  std::optional<LoadedCheckpoint> checkpoint;
  if (world.rank() == 0) {
    checkpoint = load_named_checkpoint(options.checkpoint.empty() ? best_of_run(spec) : options.checkpoint);
    restore(*checkpoint, engine.weights(), {});
  }
  broadcast_tensors(engine, world.communicator(), device.host);
  engine.upload();

  const std::int64_t batch = spec.train.global_batch(world.size());
  const auto source = data.evaluation(part, batch, job.share(), context.threads, job.target_form());
  const std::map<std::string, double> metrics =
      evaluate(engine, job.programs(), *source, result_names(job.program_spec()), world.communicator(), device.host);
  if (world.rank() != 0) return 0;
  if (options.common.json) {
    std::puts(json_numbers(metrics).dump().c_str());
    return 0;
  }
  std::printf("%s, %lld samples\n", checkpoint->path.c_str(), static_cast<long long>(info.validation_samples));
  for (const auto& [name, value] : metrics) std::printf("%s %.6g\n", name.c_str(), value);
  return 0;
}

int run_eval(EvalOptions& options) {
  const RunSpec spec = load_run_spec(options.common, options.launch);
  const Situation situation = find_situation(Variables::of_process());
  if (const std::optional<int> code = supervise_ranks(spec.cluster, options.common, options.launch, situation))
    return *code;
  return run_as_rank(situation, [&](RankContext& context) { return evaluate_checkpoint(spec, options, context); });
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
                           "A checkpoint's folder; default: runs/<name>/checkpoints/best")
                ->type_name("PATH");
            app.add_option("--data", options->part, "Which data: test (where there is some), validation or training")
                ->check(CLI::IsMember({"test", "validation", "training"}));
            return [options] { return run_eval(*options); };
          }};
}

}  // namespace trainctl
