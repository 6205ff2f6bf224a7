// Trains a run on one rank, phase by phase.
#include "run/training/training.h"

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/base/table.h"
#include "io/loader/data.h"
#include "io/metrics/metrics_jsonl.h"
#include "parallel/comm/text.h"
#include "parallel/launch/ranks/report.h"
#include "parallel/launch/ranks/run_rank.h"
#include "parallel/launch/ranks/status.h"
#include "parallel/trainer/resume.h"
#include "parallel/trainer/training_plan.h"
#include "run/job/job.h"
#include "run/job/phases.h"
#include "run/job/pretrained.h"
#include "run/planning/auto_strategy.h"
#include "run/planning/shares.h"
#include "run/training/phase_training.h"
#include "run/training/rank_run.h"
#include "run/training/rollback.h"
#include "run/training/run_files.h"

namespace trainctl {
namespace {

// Replaces `strategy: auto` by the chosen strategy, in the spec and in the config that is kept. Collective.
void resolve_strategy(RunSpec& spec, Node& config, const RunFiles& files, const DataInfo& data, RankDevice& device,
                      RankContext& context) {
  World& world = context.world;
  const std::string before = broadcast_text(chosen_before(files, world.size()), 0, world.communicator(), device.host);
  spec.strategy = before.empty() ? choose_strategy(spec, data, device, context) : read_strategy(before);
  for (Node::Entry& entry : config.entries) {
    if (entry.key == "strategy") entry.value = Value<StrategyOptions>::write(spec.strategy);
  }
}

// Checks the later phases before the first step.
void check_later_phases(const RankRun& run, std::size_t number, const DataPosition& start) {
  for (std::size_t later = number + 1; later < phase_count(run.spec); ++later) {
    check_job(in_phase(run.spec, later), run.data.info(), run.device, run.context.world, start);
  }
}

// Says that a directory holds a finished run, and that a checkpoint which --resume names is not used.
void tell_finished(const std::string& directory, const std::string& resume) {
  const std::string text = directory + " holds a finished run: nothing to do";
  if (!names_a_checkpoint(resume)) return log::info(text + "; set more epochs or steps to continue it");
  log::warning(format(
      "{}, and the checkpoint {} of --resume is not used; choose another directory (--run-dir) to go on from this "
      "checkpoint, or leave --resume out and set more epochs or steps to continue the finished run",
      text, resume));
}

// Throws CollectiveError{config} if the checkpoint that --resume names lies at or beyond the end of the run, unless the
// evaluation of its last epoch is still due.
void require_steps_left(const TrainOptions& train, const Snapshot& resumed, std::int64_t per_epoch,
                        const std::string& checkpoint) {
  const std::int64_t end = steps_of_run(train, per_epoch);
  if (end == 0 || resumed.step < end || awaits_evaluation(resumed, per_epoch)) return;
  const bool by_epochs = !train.max_steps || end < *train.max_steps;
  const std::string key = by_epochs && !train.phases.empty() ? "the sum of the epochs of train.phases"
                          : by_epochs                        ? "train.epochs"
                                                             : "train.max_steps";
  const std::string position =
      by_epochs ? format("epoch {:.6g}", static_cast<double>(resumed.step) / static_cast<double>(per_epoch))
                : "step " + grouped(resumed.step);
  throw CollectiveError(ErrorKind::config, SourceLocation{checkpoint},
                        format("there is nothing to train: the checkpoint is at {}, and {} is {}", position, key,
                               grouped(by_epochs ? *train.epochs : *train.max_steps)),
                        format("set more {}, which count from the beginning of the checkpoint's run; or begin a new "
                               "run with the checkpoint's weights (model.weights instead of --resume)",
                               by_epochs ? "epochs" : "steps"));
}

}  // namespace

int train(const RunSpec& configured, const TrainingRequest& request, RankContext& context) {
  World& world = context.world;
  RankDevice device = open_device(configured.cluster, configured.train, configured.strategy, context);
  if (request.restart && configured.checkpoint.memory_every) {
    fetch_newest_state(*request.restart, request.generation, world, device.host);
  }
  RunFiles files = open_run_files(configured, request, world, device.host);
  if (any_rank(files.directory && files.directory->is_finished(), world.communicator(), device.host)) {
    if (files.directory) {
      tell_finished(files.directory->path(), request.resume);
      if (request.json) answer(final_line(files.directory->metrics_path()));
    }
    return 0;
  }
  std::optional<Snapshot> resumed = broadcast_position(
      files.checkpoint ? std::optional(files.checkpoint->snapshot) : std::nullopt, world.communicator(), device.host);
  RunSpec spec = configured;
  spec.train = with_global_batch(configured.train, world.size(), resumed);

  const Data data(spec.data, spec.seed, data_use(spec));
  if (world.rank() == 0 && !resumed) files.pretrained = load_pretrained(spec, data.info());
  Node config = request.config;
  if (spec.strategy.automatic) resolve_strategy(spec, config, files, data.info(), device, context);
  spec = with_shares(std::move(spec), data, device, context, resumed);

  RankRun run{.spec = std::move(spec),
              .configured = configured,
              .request = request,
              .context = context,
              .device = device,
              .files = files,
              .data = data,
              .config = std::move(config)};
  const auto next_phase = [&] {
    return find_phase(run.spec.train.phases, steps_per_epoch(run.spec.train, data.info(), world.size()), resumed);
  };
  const bool is_named = names_a_checkpoint(request.resume) && !request.restart && request.replay == nullptr;
  if (resumed && is_named && request.scaling == nullptr) {
    const std::int64_t per_epoch = steps_per_epoch(run.spec.train, data.info(), world.size());
    require_steps_left(run.spec.train, *resumed, per_epoch, request.resume);
  }
  check_later_phases(run, next_phase().number, start_of(run, resumed));
  PhaseEnd end = train_phase(run, next_phase(), resumed, true);
  while (end.next_follows || end.rollback) {  // start from a checkpoint, as a resumed run does
    context.begin_start();
    if (end.rollback) {
      resumed = roll_back(run, *end.rollback);
    } else {
      if (files.directory) files.checkpoint = load_newest_checkpoint(files.directory->path());
      if (files.checkpoint) files.newest_stored = files.checkpoint->path;
      resumed = broadcast_position(files.checkpoint ? std::optional(files.checkpoint->snapshot) : std::nullopt,
                                   world.communicator(), device.host);
    }
    end = train_phase(run, next_phase(), resumed, false);
  }
  end.event.seconds = seconds_now() - run.begin;
  if (run.gpus) end.event.gpus = run.gpus->summary();
  const bool goes_on = end.event.status == "stopped" && is_resizing(context.situation.status_file);
  if (files.memory && !goes_on) files.memory->is_kept = false;
  if (files.sink && !goes_on) {
    files.sink->end(end.event);
    if (request.json) answer(end_line(end.event));
  }
  return end.event.status == "stopped" ? exit_code(ErrorKind::stopped) : 0;
}

}  // namespace trainctl
