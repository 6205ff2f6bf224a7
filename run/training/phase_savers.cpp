// Opens the savers of a phase.
#include "run/training/phase_savers.h"

#include <vector>

#include "io/checkpoint/options.h"
#include "parallel/checkpoint/staged_saver.h"
#include "parallel/launch/ranks/run_rank.h"
#include "run/job/job.h"
#include "run/training/phase_start.h"
#include "run/training/rank_run.h"
#include "run/training/run_files.h"
#include "run/training/training.h"

namespace trainctl {

PhaseSavers::PhaseSavers(RankRun& run, Job& job, const SnapshotPlan& snapshots, const CheckpointOptions& options)
    : run_(run), job_(job), snapshots_(snapshots), options_(options) {
  if (keeps_copies()) peer_plan_ = plan_peer(job.engine(), run.context.world, run.device.host);
}

PhaseSavers::~PhaseSavers() = default;

bool PhaseSavers::keeps_copies() const { return options_.memory_every && run_.request.scaling == nullptr; }

std::int64_t PhaseSavers::staged_bytes() const {
  const std::int64_t own = trainctl::staged_bytes(snapshots_, run_.context.world.rank(), options_);
  return own + (peer_plan_ ? peer_plan_->staged_bytes(options_) : 0);
}

void PhaseSavers::open_copies() {
  if (run_.request.scaling != nullptr) return;
  const std::int64_t state = options_.weights_only ? 0 : snapshots_.state.bytes();
  run_.peer = open_peer_copies(run_, snapshots_.weights.bytes() + state);
}

void PhaseSavers::start() {
  World& world = run_.context.world;
  const auto start = [&](const SnapshotOutlet& outlet, const SnapshotPlan& plan, Communicator& ranks) {
    return std::make_unique<StagedSaver>(job_.engine(), plan, outlet, options_.background, ranks, run_.device.host);
  };
  checkpoints_ =
      start({folder(), run_.files.store.get(), options_.weights_only, false}, snapshots_, world.communicator());
  if (!keeps_copies()) return;
  // A rank writes to the copies on its own host. It sends its shards to the first rank on the other host.
  const std::vector<std::string>& hosts = world.hosts();
  const auto outlet_of = [&](int writer) {
    const bool is_here = hosts[static_cast<std::size_t>(world.rank())] == hosts[static_cast<std::size_t>(writer)];
    SnapshotStore* const store = world.rank() == writer && run_.files.memory ? &run_.files.memory->store : nullptr;
    return SnapshotOutlet{is_here ? &memory_folder_ : nullptr, store, options_.weights_only, true};
  };
  memory_ = start(outlet_of(0), snapshots_, world.communicator());
  if (run_.peer) peer_ = start(outlet_of(*run_.peer), peer_plan_->plan, *peer_plan_->ranks);
}

std::string PhaseSavers::peer_host() const {
  return run_.peer ? run_.context.world.hosts()[static_cast<std::size_t>(*run_.peer)] : "";
}

SnapshotSink* PhaseSavers::folder() { return run_.shares_directory ? &folder_ : nullptr; }

}  // namespace trainctl
