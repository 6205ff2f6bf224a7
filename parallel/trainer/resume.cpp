// Restores the state of a run from its checkpoint.
#include "parallel/trainer/resume.h"

#include <cstdlib>
#include <map>
#include <utility>

#include "core/backend/choice_changes.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/log.h"
#include "core/base/table.h"
#include "core/optim/schedule.h"
#include "core/spec/units.h"
#include "parallel/comm/text.h"
#include "parallel/trainer/hooks/early_stopping.h"
#include "parallel/trainer/hooks/plateau.h"
#include "parallel/trainer/options.h"
#include "parallel/trainer/training_plan.h"

namespace trainctl {
namespace {

// Whether the checkpoint's metadata has another value than the plan's; false if it has none.
bool differs(const std::string& name, const Snapshot& resumed, const TrainingPlan& plan) {
  const auto before = resumed.metadata.find(name);
  return before != resumed.metadata.end() && !before->second.empty() && before->second != plan.metadata.at(name);
}

}  // namespace

std::optional<Snapshot> broadcast_position(const std::optional<Snapshot>& mine, Communicator& world, Stream& stream) {
  std::string text;
  if (mine) {
    Json json = {{"step", mine->step},
                 {"seed", mine->position.seed},
                 {"epoch", mine->position.epoch},
                 {"offset", mine->position.offset},
                 {"metadata", mine->metadata},
                 {"metrics", json_numbers(mine->metrics)}};
    if (mine->best) {
      json["best"] = {{"monitor", mine->best->monitor},
                      {"maximum", mine->best->maximum},
                      {"value", mine->best->value},
                      {"step", mine->best->step}};
    }
    text = json_text(json);
  }
  text = broadcast_text(text, 0, world, stream);
  if (text.empty()) return std::nullopt;
  const Json json = parse_json(text);
  Snapshot snapshot;
  snapshot.step = json.at("step");
  snapshot.position = {json.at("seed"), json.at("epoch"), json.at("offset")};
  snapshot.metadata = json.at("metadata").get<SnapshotMetadata>();
  for (const auto& [name, value] : json.at("metrics").items()) snapshot.metrics[name] = number_of(value);
  if (const auto best = json.find("best"); best != json.end()) {
    snapshot.best = {best->at("monitor"), best->at("maximum"), best->at("value"), best->at("step")};
  }
  return snapshot;
}

std::string metadata_value(const std::optional<Snapshot>& snapshot, const std::string& name) {
  if (!snapshot) return "";
  const auto found = snapshot->metadata.find(name);
  return found == snapshot->metadata.end() ? "" : found->second;
}

TrainOptions with_global_batch(TrainOptions train, int ranks, const std::optional<Snapshot>& resumed) {
  std::int64_t batch = train.global_batch(ranks);
  const std::string before = metadata_value(resumed, "batch_size");
  if (train.batch_size_per_rank && !before.empty()) {
    const std::int64_t kept = parse_integer(before).value_or(0);
    if (kept < 1)
      throw CollectiveError(ErrorKind::data, "the checkpoint is damaged: its batch has " + before + " samples");
    if (kept != batch) {
      log::info(format("the batch stays {}, as when the run began: {} for each rank would make it {} now",
                       counted(kept, "sample"), grouped(*train.batch_size_per_rank), grouped(batch)));
    }
    batch = kept;
  }
  const auto* scaling = std::get_if<RateScaling>(&train.scale_learning_rate);
  if (scaling && *scaling == RateScaling::by_ranks) train.scale_learning_rate = *train.batch_size_per_rank;
  train.batch_size = batch;
  train.batch_size_per_rank.reset();
  return train;
}

bool awaits_evaluation(const Snapshot& snapshot, std::int64_t steps_per_epoch) {
  const std::string count = metadata_value(snapshot, "epoch/count");  // number of samples since the last evaluation
  return snapshot.step % steps_per_epoch == 0 && std::strtod(count.c_str(), nullptr) > 0;
}

Snapshot without_results_of_other_data(Snapshot snapshot, const TrainingPlan& plan) {
  if (!differs("data", snapshot, plan)) return snapshot;
  snapshot.best.reset();
  EarlyStopping::forget_best(snapshot.metadata);
  Plateau::forget_best(snapshot.metadata);
  return snapshot;
}

void log_resume(const TrainingPlan& plan, const std::function<double(const ScheduleTime&)>& scheduled_rate,
                const Snapshot& resumed, const std::string& path) {
  log::info(format("goes on from {} (step {}, epoch {:.2f})", path, resumed.step,
                   static_cast<double>(resumed.step) / static_cast<double>(plan.loop.steps_per_epoch)));
  if (differs("data", resumed, plan)) {
    log::warning(
        format("the data has changed since the checkpoint: samples may be seen twice or not at all{}",
               resumed.best ? ", and the best result so far is forgotten, since it is one of the other data" : ""));
  }
  if (differs("device", resumed, plan)) {
    log::warning(format(
        "the checkpoint is from {}; this is {}: {}", metadata_value(resumed, "device"), plan.metadata.at("device"),
        plan.reproducible ? "the bits that strategy.reproducible promises on one device are not to be expected"
                          : "the same bits are not to be expected"));
  } else if (const auto changed =
                 changed_choices(metadata_value(resumed, "kernel_choices"), plan.metadata.at("kernel_choices"));
             !changed.empty()) {
    log::warning(
        format("{} of the run's kernels differ from those of the checkpoint, such as {} instead of {} for {}: the same "
               "bits are not to be expected",
               changed.size(), changed.front().now, changed.front().before, changed.front().key));
  }
  const std::int64_t total = parse_integer(metadata_value(resumed, "total_steps")).value_or(0);
  const std::int64_t now_total = plan.loop.total_steps - plan.loop.phase.step,
                     done = resumed.step - plan.loop.phase.step;
  const bool begins_phase = plan.loop.phase.number > 0 && done == 0;
  if (total <= 0 || plan.loop.total_steps <= 0 || begins_phase) return;
  const double before = scheduled_rate({done, plan.loop.steps_per_epoch, total});
  const double now = plan.loop.learning_rate(resumed.step);
  if (before != now) {
    log::warning(
        format("the schedule depends on the length of the run, now {} instead of {}: the learning rate is now "
               "{:.3g} instead of {:.3g}",
               counted(now_total, "step"), grouped(total), now, before));
  }
}

}  // namespace trainctl
