// Builds the start event of a run and the metadata of its checkpoints.
#include "run/training/run_metadata.h"

#include <algorithm>

#include "core/backend/gpu_peaks.h"
#include "core/base/version.h"
#include "core/exec/interfaces/metrics_sink.h"
#include "io/pictures/picture.h"
#include "parallel/trainer/training_plan.h"
#include "run/job/job.h"
#include "run/planning/shares.h"
#include "run/prediction/meaning.h"
#include "run/run_spec.h"

namespace trainctl {

StartEvent start_event(const RunSpec& spec, const World& world, const Job& job, const TrainingPlan& plan,
                       const MemoryPlan& memory, const std::optional<Snapshot>& resumed,
                       const std::string& resumed_from) {
  StartEvent event;
  event.version = version();
  event.seed = spec.seed;
  event.ranks = world.size();
  event.mesh = plan.mesh;
  for (const std::string& host : world.hosts()) {
    if (std::find(event.hosts.begin(), event.hosts.end(), host) == event.hosts.end()) event.hosts.push_back(host);
  }
  event.device = job.backend().fingerprint();
  event.kernels = job.kernels().hash;
  for (const LayerLine& layer : job.programs().programs().front().layers) {
    event.parameters += layer.parameters;
    event.flops_per_sample += 3 * layer.flops;
  }
  event.peak_flops = world.size() * datasheet_flops(job.backend().fingerprint(), spec.train.compute(), spec.train.tf32);
  event.resumed_from = resumed_from;
  event.steps_per_epoch = plan.loop.steps_per_epoch;
  event.total_steps = plan.loop.total_steps;
  if (plan.loop.phases > 1) {
    const std::int64_t all = *spec.train.epochs * plan.loop.steps_per_epoch;
    event.total_steps = std::min(all, spec.train.max_steps.value_or(all));
  }
  event.first_step = resumed ? resumed->step : 0;
  event.monitor = plan.loop.monitor.name;
  event.monitor_maximum = plan.loop.monitor.maximum;
  for (const MemoryLine& line : memory.lines()) event.memory.emplace_back(line.name, line.bytes);
  return event;
}

bool shows_samples(const RunSpec& spec, const DataInfo& data) {
  const bool single = input_names(spec.model).size() == 1 && output_names(spec.model).size() == 1;
  if (!spec.log.tensorboard || !spec.log.samples || !single) return false;
  const TargetInfo& target = data.targets[0];
  if (!is_picture(data.inputs[0].sample) || target.classes < 2 || target.shape.rank() > 0) return false;
  using Kind = OutputMeaning::Kind;
  return meaning_of(spec, 0, {target.classes}, {}).kind == Kind::classes ||
         (target.classes == 2 && meaning_of(spec, 0, {1}, {}).kind == Kind::yes_or_no);
}

SnapshotMetadata run_metadata(const Job& job, const DataInfo& data, int ranks, std::int64_t batch,
                              std::int64_t total_steps, const std::string& shares) {
  SnapshotMetadata metadata{{"kernel_choices", job.kernels().choices.text()},
                            {"kernel_hash", job.kernels().hash},
                            {"batch_size", std::to_string(batch)},
                            {"device", job.backend().fingerprint()},
                            {"data", data.fingerprint},
                            {"ranks", std::to_string(ranks)},
                            {"total_steps", std::to_string(total_steps)}};
  const std::vector<std::string>& class_names = data.targets[0].class_names;
  if (!shares.empty()) metadata[share_key] = shares;
  if (!class_names.empty()) metadata[class_names_key] = write_class_names(class_names);
  return metadata;
}

}  // namespace trainctl
