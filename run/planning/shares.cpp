// Replicas' shares of a batch, measured or remembered.
#include "run/planning/shares.h"

#include <sstream>

#include "core/base/format.h"
#include "core/base/log.h"
#include "parallel/trainer/batch_sizes.h"
#include "parallel/trainer/initial_weights.h"
#include "parallel/trainer/replica_speeds.h"
#include "parallel/trainer/resume.h"
#include "run/job/job.h"

namespace trainctl {
namespace {

constexpr double measured_seconds = 1;

// Each replica as a run of its own, on the smallest of equal shares. The training data is read from its beginning.
std::vector<double> measure(const RunSpec& spec, const Mesh& mesh, const Data& data, RankDevice& device,
                            RankContext& context) {
  World& world = context.world;
  Communicator& devices = device.communicator(world);
  const MeshRank rank(mesh, world.rank());
  const int replica = rank.along(MeshAxis::data), within = mesh.ranks_of_replica();
  const auto own = devices.split(replica, world.rank());
  const auto own_hosts = world.communicator().split(replica, world.rank());
  RunSpec alone = spec;
  alone.strategy.data = {};
  alone.train.batch_size_per_rank = {};
  alone.train.batch_size = spec.train.global_batch(world.size()) / mesh.data;
  const Strategy strategy = strategy_for(alone, data.info(), within, *device.backend);
  BatchSizes sizes = batch_sizes(spec.train, spec.strategy, data.info(), world.size());
  sizes = {.training = *alone.train.batch_size, .gradient_accumulation = sizes.gradient_accumulation};
  const RunPrograms programs = build_programs(alone, data.info(), strategy, sizes, world.rank() % within);
  KernelChoices choices =
      choose_kernels(alone, data.info(), strategy, sizes, "", *device.backend, world, device.host).choices;
  const MeshAxes axes(*own, strategy.mesh, device.backend->on_host());
  Engine engine(*device.backend, axes.communicators(), compile(programs.programs(), *device.backend, choices));
  engine.download();
  initialize_weights(program_spec(alone, data.info()), spec.seed, engine.weights());
  engine.begin_at_weights();
  engine.upload();
  const auto source = data.training(sizes.training, programs.rank(), {spec.seed, 0, 0}, context.threads,
                                    programs.programs().front().target_forms,
                                    [&device](std::int64_t bytes) { return device.backend->allocate_host(bytes); });
  return replica_speeds(engine, programs.training(sizes.training), source->next(), replica, mesh.data, measured_seconds,
                        *own_hosts, world.communicator(), device.host);
}

// The shares of the run's checkpoint; nothing where it is of other ranks, another batch or other micro-batches.
std::vector<std::int64_t> known_shares(const std::optional<Snapshot>& resumed, const Mesh& mesh,
                                       const BatchSizes& sizes) {
  if (fact(resumed, "ranks") != std::to_string(mesh.ranks())) return {};
  std::istringstream text(fact(resumed, share_fact));
  std::vector<std::int64_t> shares;
  std::int64_t sum = 0;
  for (std::int64_t share = 0; text >> share; sum += share) {
    if (share % sizes.gradient_accumulation != 0) return {};
    shares.push_back(share);
  }
  return sum == sizes.training && std::ssize(shares) == mesh.data ? shares : std::vector<std::int64_t>{};
}

}  // namespace

RunSpec with_shares(RunSpec spec, const Data& data, RankDevice& device, RankContext& context,
                    const std::optional<Snapshot>& resumed) {
  if (!spec.strategy.shares_by_measuring()) return spec;
  World& world = context.world;
  spec.strategy.share = ShareValue(ShareMode::equal);
  const Mesh mesh = mesh_of(spec.strategy, world.size());
  const BatchSizes sizes = batch_sizes(spec.train, spec.strategy, data.info(), world.size());
  if (mesh.data == 1 || sizes.training < mesh.data) return spec;
  std::vector<std::int64_t> shares = known_shares(resumed, mesh, sizes);
  const bool known = !shares.empty();
  if (!known) {
    const std::vector<double> speeds = measure(spec, mesh, data, device, context);
    shares = parts_by_speed(sizes.training, sizes.gradient_accumulation, speeds);
  }
  spec.strategy.share = ShareValue(std::vector<double>(shares.begin(), shares.end()));
  if (world.rank() == 0) {
    log::info(format("replicas' shares of a batch, {}: {} samples",
                     known ? "as when the run began" : "by their measured speeds", text_of_shares(spec.strategy)));
  }
  return spec;
}

std::string text_of_shares(const StrategyOptions& strategy) {
  std::string text;
  if (const auto* shares = std::get_if<std::vector<double>>(&strategy.share.value)) {
    for (const double share : *shares) text += format("{}{}", text.empty() ? "" : " ", share);
  }
  return text;
}

}  // namespace trainctl
