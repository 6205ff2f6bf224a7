// Timing replicas beside each other.
#include "parallel/trainer/replica_speeds.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/clock.h"
#include "core/base/error.h"

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

}  // namespace

std::vector<double> replica_speeds(Engine& engine, int program, const Batch& batch, int replica, int replicas,
                                   double seconds, Communicator& own, Communicator& world, Stream& stream) {
  constexpr std::int64_t most_steps = 1000;
  seconds_of(engine, program, batch, 1);  // the first step is slower: memory that nobody touched yet
  world.barrier(stream);
  stream.synchronize();
  const double once = largest_of(seconds_of(engine, program, batch, 2) / 2, own, stream);
  const auto steps = std::clamp<std::int64_t>(std::llround(seconds / std::max(once, 1e-9)), 3, most_steps);
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

std::vector<std::int64_t> parts_by_speed(std::int64_t samples, std::int64_t unit, const std::vector<double>& speeds) {
  require(unit >= 1 && samples % unit == 0, "units divide the samples");
  const std::int64_t units = samples / unit, least = units >= std::ssize(speeds) ? 1 : 0;
  const double all = std::accumulate(speeds.begin(), speeds.end(), 0.0);
  std::vector<std::int64_t> parts;
  std::vector<double> missing;  // by which a part is smaller than in proportion
  for (const double speed : speeds) {
    const double exact = static_cast<double>(units) * speed / all;
    parts.push_back(std::max(least, static_cast<std::int64_t>(exact)));
    missing.push_back(exact - static_cast<double>(parts.back()));
  }
  // One unit at a time to the part that lacks most, or from that which has most too much.
  std::int64_t left = units - std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
  for (; left != 0; left -= left > 0 ? 1 : -1) {
    const auto better = [&](std::size_t a, std::size_t b) {
      return left > 0 ? missing[a] > missing[b] : parts[b] <= least || (parts[a] > least && missing[a] < missing[b]);
    };
    std::size_t best = 0;
    for (std::size_t i = 1; i < parts.size(); ++i) {
      if (better(i, best)) best = i;
    }
    parts[best] += left > 0 ? 1 : -1;
    missing[best] -= left > 0 ? 1 : -1;
  }
  for (std::int64_t& part : parts) part *= unit;
  return parts;
}

}  // namespace trainctl
