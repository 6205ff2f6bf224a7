// Begins a run.
#include "run/training/rank_run.h"

#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/optim/schedule.h"
#include "io/loader/data.h"
#include "parallel/comm/joint_attempt.h"
#include "parallel/comm/text.h"
#include "parallel/launch/host/resources.h"
#include "parallel/launch/ranks/rank_flight.h"
#include "parallel/launch/ranks/run_rank.h"
#include "parallel/launch/ranks/status.h"
#include "parallel/launch/situation.h"
#include "parallel/plan/prediction.h"
#include "parallel/trainer/resume.h"
#include "parallel/trainer/training_plan.h"
#include "run/job/causality.h"
#include "run/job/job.h"
#include "run/training/run_files.h"
#include "run/training/run_metadata.h"
#include "run/training/training.h"

namespace trainctl {
namespace {

// The bytes of the tensors of a checkpoint, as far as this rank's stage has them.
std::int64_t bytes_of_checkpoint(const RankRun& run, const Job& job) {
  return checkpoint_bytes({&job.programs().programs().front()}, run.spec.checkpoint.weights_only);
}

// Throws Error{resource} on all ranks if the run directory has no space for a checkpoint.
void require_space(RankRun& run, const Job& job) {
  JointAttempt attempt(run.context.world.communicator(), run.device.host);
  attempt.run([&] {
    if (!run.files.directory) return;
    const std::int64_t bytes = bytes_of_checkpoint(run, job) + record_bytes_of_run;
    const std::string why = disk_space_problem(nearest_folder(run.files.directory->path()), bytes);
    if (why.empty()) return;
    throw Error(ErrorKind::resource, "no checkpoint can be written: " + why,
                why.ends_with("is read-only") ? "choose a run directory that can be written (--run-dir)"
                                              : "free some space there, or choose another run directory (--run-dir)");
  });
  attempt.throw_if_any_failed();
}

// Tells the supervisor of this run the number of steps done, once a second.
class StepTeller final : public MetricsSink {
 public:
  explicit StepTeller(std::string status_file) : status_file_(std::move(status_file)) {}

  void start(const StartEvent&) override {}
  void step(const StepEvent& event) override {
    const double now = seconds_now();
    if (now < next_) return;
    next_ = now + 1;
    tell(event.step);
  }
  void epoch(const EpochEvent&) override {}
  // A saved step is progress that a restart keeps, and is reported at once.
  void checkpoint(const CheckpointEvent& event) override {
    if (event.step > told_) tell(event.step);
  }
  void end(const EndEvent&) override {}

 private:
  void tell(std::int64_t step) {
    write_step(status_file_, step);
    told_ = step;
  }

  std::string status_file_;
  double next_ = 0;
  std::int64_t told_ = 0;
};

// Records the requests to resize that the supervisor has refused: at most a second later, and before the run ends.
class RefusalRecorder final : public MetricsSink {
 public:
  // `records`: receives the requests; must outlive the object.
  RefusalRecorder(std::string status_file, MetricsSink& records)
      : status_file_(std::move(status_file)), records_(records) {}

  void start(const StartEvent&) override {}
  void step(const StepEvent& event) override {
    const double now = seconds_now();
    if (now < next_) return;
    next_ = now + 1;
    record(event.step);
  }
  void epoch(const EpochEvent&) override {}
  // The ranks may stop after a checkpoint for another request.
  void checkpoint(const CheckpointEvent& event) override { record(event.step); }
  void end(const EndEvent& event) override { record(event.step); }

 private:
  void record(std::int64_t step) {
    for (RefusedResize& refused : read_refused_resizes(status_file_, recorded_)) {
      ++recorded_;
      records_.refused_resize({step, refused.ranks, std::move(refused.reason)});
    }
  }

  std::string status_file_;
  MetricsSink& records_;
  std::size_t recorded_ = 0;  // the number of requests that are recorded
  double next_ = 0;
};

// Whether a folder is on a file system of the network.
bool is_on_network(const std::string& folder) {
  constexpr std::array<std::uint32_t, 7> types{
      0x6969,     0x0BD00BD0, 0xFE534D42, 0xFF534D42,
      0x65735546, 0x47504653, 0x00C36400};  // NFS, Lustre, SMB 2, CIFS, FUSE, GPFS, Ceph
  struct statfs status {};
  if (statfs(folder.c_str(), &status) != 0) return true;
  return std::find(types.begin(), types.end(), static_cast<std::uint32_t>(status.f_type)) != types.end();
}

// Keeps this rank's flight record in the run directory, unless the launcher has named another folder. Collective.
void keep_flight(RankRun& run) {
  RankContext& context = run.context;
  const World& world = context.world;
  const std::string path = run.files.directory ? std::filesystem::absolute(run.files.directory->path()).string() : "";
  const std::string directory = broadcast_text(path, 0, context.world.communicator(), run.device.host);
  if (context.flight || !run.shares_directory || run.request.scaling != nullptr) return;
  const std::string folder = directory + "/flight";
  if (is_on_network(directory)) return;  // a mapped file there may delay or end the training
  if (world.rank() == 0) remove_flights_from(folder, world.size());
  context.set_flight(open_flight(folder, world.rank(), world.size()));
}

}  // namespace

DataPosition start_of(const RankRun& run, const std::optional<Snapshot>& resumed) {
  return resumed ? resumed->position : DataPosition{run.spec.seed, 0, 0};
}

void begin_run(RankRun& run, Job& job, const TrainOptions& train, const TrainingPlan& plan, const MemoryPlan& memory,
               const std::optional<Snapshot>& resumed) {
  RunFiles& files = run.files;
  require_space(run, job);
  if (files.directory) {
    claim_directory(files, run.spec, run.request,
                    with_findings(run.config, run.spec, run.data, job, run.configured.strategy.automatic),
                    run.data.info(), bytes_of_checkpoint(run, job));
  }
  if (const Situation& situation = run.context.situation; files.sink && situation.supervised) {
    if (files.memory) files.memory->is_kept = true;  // the supervisor removes the copies
    files.sink->add(std::make_unique<StepTeller>(situation.status_file));
    files.sink->add_first(std::make_unique<RefusalRecorder>(situation.status_file, *files.sink));
  }
  run.shares_directory = join_log(files.directory ? files.directory->path() : "", run.context, run.device.host);
  keep_flight(run);
  if (run.context.world.rank() == 0) {
    if (run.request.replay == nullptr && run.request.scaling == nullptr) {  // as in PhaseHooks
      const std::string faults =
          rehearsal_warning(run.spec.faults, files.directory->path(), resumed ? resumed->step : 0);
      if (!faults.empty()) log::warning(faults);
    }
    for (const std::string& warning : run.data.info().warnings) log::warning(warning);
    for (const std::string& warning : job.engine().program(0).program.warnings) log::warning(warning);
    const std::string seen = causality_warning(run.spec, run.data.info());
    if (!seen.empty()) log::warning(seen);
    const std::string short_run = warmup_warning(train, run.data.info(), run.context.world.size());
    if (!short_run.empty()) log::warning(short_run);
    if (train.rate_factor() != 1) {
      log::info(format("the learning rate is {:.4g} times the config's value, for a batch size of {}",
                       train.rate_factor(), *train.batch_size));
    }
  }
  if (resumed && files.directory) {
    const auto rate = [&train](const ScheduleTime& time) { return scheduled_rate(train, time); };
    log_resume(plan, rate, *resumed, files.resumed_from);
    const bool observes = run.request.replay != nullptr || run.request.scaling != nullptr;  // such a run has other keys
    if (!files.foreign_keys.empty() && !observes) log::warning(files.foreign_keys);
  }
  if (files.sink) {
    files.sink->start(start_event(run.spec, run.context.world, job, plan, memory, resumed, files.resumed_from));
    if (run.request.restart) {
      RestartEvent event = run.request.restart->event;
      event.ranks = run.context.world.size();
      files.sink->restart(event);
    }
  }
  if (run.spec.log.gpu && !run.device.gpu_uuid.empty()) {
    run.gpus = watch_gpu(run.device.gpu_uuid, run.context.world.communicator(), run.device.host, plan.log_every);
  }
  run.begin = seconds_now();
}

}  // namespace trainctl
