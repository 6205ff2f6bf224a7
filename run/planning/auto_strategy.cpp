// Chooses a strategy by prediction.
#include "run/planning/auto_strategy.h"

#include <algorithm>
#include <optional>

#include "core/base/format.h"
#include "core/base/log.h"
#include "parallel/comm/text.h"
#include "parallel/launch/ranks/run_rank.h"
#include "parallel/plan/alternatives.h"
#include "parallel/plan/report.h"
#include "run/job/device.h"
#include "run/planning/measuring.h"
#include "run/planning/planned_runs.h"

namespace trainctl {
namespace {

std::string seconds_of(const Alternative& alternative) {
  return format("{} {:.4g} ms", describe(alternative.options, alternative.mesh), 1e3 * alternative.step_seconds);
}

// Returns the choice and the text that explains it, on rank 0. If no alternative fits, the choice is empty.
std::pair<std::optional<Alternative>, std::string> choose(std::vector<Alternative> alternatives, std::int64_t memory) {
  if (alternatives.empty()) return {{}, std::string(no_strategy_text)};
  std::ranges::stable_sort(alternatives, is_preferred);
  const Alternative& best = alternatives.front();
  if (!best.fits) {
    return {{},
            format("no strategy fits into {} of memory per rank; {} needs the least, {}", byte_text(memory),
                   describe(best.options, best.mesh), byte_text(best.memory))};
  }
  std::string why = format("strategy: auto chooses {} a step", seconds_of(best));
  if (alternatives.size() > 1 && alternatives[1].fits) why += format("; next {}", seconds_of(alternatives[1]));
  const Alternative& fastest = *std::ranges::min_element(alternatives, {}, &Alternative::step_seconds);
  if (!fastest.fits) why += format("; {} does not fit", seconds_of(fastest));
  return {best, why};
}

}  // namespace

std::string strategy_text(const StrategyOptions& options) { return to_yaml(Value<StrategyOptions>::write(options)); }

StrategyOptions read_strategy(const std::string& text) {
  Reader reader;
  StrategyOptions options;
  Value<StrategyOptions>::read(parse_yaml(text, "the chosen strategy", ".", reader), reader, options);
  reader.throw_if_failed();
  return options;
}

StrategyOptions choose_strategy(const RunSpec& spec, const DataInfo& data, RankDevice& device, RankContext& context) {
  World& world = context.world;
  if (world.size() == 1) return for_one_rank(spec.strategy);
  Backend& backend = *device.backend;
  const std::int64_t memory = memory_of_every_rank(spec.cluster, device, world);
  const PlanRequest request{
      spec, data, world.size(), ranks_per_node(world.hosts()), traits_of(backend), PlannedRanks::stages, memory};
  measure_together(request, device, context);

  std::string chosen, why;
  if (world.rank() == 0) {
    const PlanTarget target = measured_target(request, world.size(), backend, context.threads).target;
    const auto [best, reason] = choose(predict_alternatives(request, target, 1), memory);
    if (best) chosen = strategy_text(best->options);
    why = reason;
  }
  chosen = broadcast_text(chosen, 0, world.communicator(), device.host);
  why = broadcast_text(why, 0, world.communicator(), device.host);
  if (chosen.empty()) {
    throw CollectiveError(ErrorKind::resource, why,
                          "use a smaller batch or network, use more ranks, or allow more memory (cluster.memory)");
  }
  log::info(why);
  return read_strategy(chosen);
}

}  // namespace trainctl
