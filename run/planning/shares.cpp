// Finds the replicas' shares of a batch, by measuring or in the checkpoint.
#include "run/planning/shares.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <sstream>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/exec/engine.h"
#include "io/loader/data.h"
#include "parallel/launch/ranks/run_rank.h"
#include "parallel/trainer/batch_sizes.h"
#include "parallel/trainer/initial_weights.h"
#include "parallel/trainer/resume.h"
#include "run/job/job.h"
#include "run/run_spec.h"

namespace trainctl {
namespace {

double seconds_of(Engine& engine, int program, const Batch& batch, std::int64_t steps) {
  StepResult result;
  const double start = seconds_now();
  for (std::int64_t step = 0; step < steps; ++step) engine.run(program, batch, {0.0, step, false}, result);
  return seconds_now() - start;
}

double largest_of(double value, Communicator& ranks, Stream& stream) {
  ranks.all_reduce({&value, DType::float64, 1}, Reduction::maximum, stream);
  stream.synchronize();
  return value;
}

constexpr double measured_seconds = 1;

// Measures the samples per second of each replica, by its number. Every replica runs whole steps of its own program on
// one batch, at the same time as the others and without waiting for them, for about `seconds` of wall-clock time. `own`
// connects the ranks of this replica, which use the engine together and run the same number of steps; `replica` is its
// number. Collective over the world; the weights stay as they are.
std::vector<double> replica_speeds(Engine& engine, int program, const Batch& batch, int replica, int replicas,
                                   double seconds, Communicator& own, Communicator& world, Stream& stream) {
  constexpr std::int64_t max_steps = 1000;
  seconds_of(engine, program, batch, 1);  // the first step is slower, since it is the first to touch its memory
  world.barrier(stream);
  stream.synchronize();
  const double once = largest_of(seconds_of(engine, program, batch, 2) / 2, own, stream);
  const auto steps = std::clamp<std::int64_t>(std::llround(seconds / std::max(once, 1e-9)), 3, max_steps);
  world.barrier(stream);
  stream.synchronize();
  const double taken = largest_of(seconds_of(engine, program, batch, steps), own, stream);
  std::vector<double> speeds(static_cast<std::size_t>(replicas));
  if (own.rank() == 0) {
    speeds[static_cast<std::size_t>(replica)] = static_cast<double>(steps * batch.count) / std::max(taken, 1e-9);
  }
  world.all_reduce({speeds.data(), DType::float64, replicas}, Reduction::sum, stream);
  stream.synchronize();
  return speeds;
}

// Measures each replica as a run of its own, on the smallest of equal shares. Reads training data from its beginning.
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
  BatchSizes sizes = batch_sizes(spec.model, spec.train, spec.strategy, data.info(), world.size());
  sizes = {.training = *alone.train.batch_size, .gradient_accumulation = sizes.gradient_accumulation};
  const RunPrograms programs = build_programs(alone, data.info(), strategy, sizes, world.rank() % within);
  KernelChoices choices =
      choose_kernels(alone, data.info(), strategy, sizes, "", *device.backend, world, device.host).choices;
  const MeshAxes axes(*own, strategy.mesh, own_backward(*device.backend, *own));
  Engine engine(*device.backend, axes.communicators(), compile(programs.programs(), *device.backend, choices));
  engine.download();
  initialize_weights(program_spec(alone, data.info()), spec.seed, engine.weights());
  engine.begin_at_weights();
  engine.upload();
  const auto source = data.training(sizes.training, programs.rank(), {spec.seed, 0, 0}, context.threads,
                                    programs.programs().front().target_encodings,
                                    [&device](std::int64_t bytes) { return device.backend->allocate_host(bytes); });
  return replica_speeds(engine, programs.training(sizes.training), source->next(), replica, mesh.data, measured_seconds,
                        *own_hosts, world.communicator(), device.host);
}

// The shares of the run's checkpoint; empty if its number of ranks, batch or micro-batches differ.
std::vector<std::int64_t> known_shares(const std::optional<Snapshot>& resumed, const Mesh& mesh,
                                       const BatchSizes& sizes) {
  if (metadata_value(resumed, "ranks") != std::to_string(mesh.ranks())) return {};
  std::istringstream text(metadata_value(resumed, share_key));
  std::vector<std::int64_t> shares;
  std::int64_t sum = 0;
  for (std::int64_t share = 0; text >> share; sum += share) {
    if (share % sizes.gradient_accumulation != 0) return {};
    shares.push_back(share);
  }
  return sum == sizes.training && std::ssize(shares) == mesh.data ? shares : std::vector<std::int64_t>{};
}

}  // namespace

std::vector<std::int64_t> shares_by_speed(std::int64_t samples, std::int64_t unit, const std::vector<double>& speeds) {
  require(unit >= 1 && samples % unit == 0, "units divide the samples");
  const std::int64_t units = samples / unit, least = units >= std::ssize(speeds) ? 1 : 0;
  const double all = std::accumulate(speeds.begin(), speeds.end(), 0.0);
  std::vector<std::int64_t> shares;
  std::vector<double> missing;  // exact proportion minus share
  for (const double speed : speeds) {
    const double exact = static_cast<double>(units) * speed / all;
    shares.push_back(std::max(least, static_cast<std::int64_t>(exact)));
    missing.push_back(exact - static_cast<double>(shares.back()));
  }
  // One unit at a time is added to the share that is furthest below its proportion, or taken from the one that is
  // furthest above it.
  std::int64_t left = units - std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
  for (; left != 0; left -= left > 0 ? 1 : -1) {
    const auto better = [&](std::size_t a, std::size_t b) {
      return left > 0 ? missing[a] > missing[b] : shares[b] <= least || (shares[a] > least && missing[a] < missing[b]);
    };
    std::size_t best = 0;
    for (std::size_t i = 1; i < shares.size(); ++i) {
      if (better(i, best)) best = i;
    }
    shares[best] += left > 0 ? 1 : -1;
    missing[best] -= left > 0 ? 1 : -1;
  }
  for (std::int64_t& share : shares) share *= unit;
  return shares;
}

RunSpec with_shares(RunSpec spec, const Data& data, RankDevice& device, RankContext& context,
                    const std::optional<Snapshot>& resumed) {
  if (!spec.strategy.shares_by_measuring()) return spec;
  World& world = context.world;
  spec.strategy.share = ShareValue(ShareMode::equal);
  const Mesh mesh = mesh_of(spec.strategy, world.size());
  const BatchSizes sizes = batch_sizes(spec.model, spec.train, spec.strategy, data.info(), world.size());
  if (mesh.data == 1 || sizes.training < mesh.data) return spec;
  std::vector<std::int64_t> shares = known_shares(resumed, mesh, sizes);
  const bool known = !shares.empty();
  if (!known) {
    const std::vector<double> speeds = measure(spec, mesh, data, device, context);
    shares = shares_by_speed(sizes.training, sizes.gradient_accumulation, speeds);
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
