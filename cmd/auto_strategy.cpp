// Choosing a strategy by prediction.
#include "cmd/auto_strategy.h"

#include <algorithm>
#include <optional>

#include "cmd/measuring.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "io/kernels/kernel_cache.h"
#include "io/loader/data.h"
#include "parallel/comm/text.h"
#include "parallel/plan/alternatives.h"
#include "parallel/plan/prediction.h"
#include "parallel/trainer/batch_sizes.h"

namespace trainctl {
namespace {

struct Candidate {
  StrategyOptions options;
  Mesh mesh;
  double step_seconds = 0;
  std::int64_t memory = 0;
};

std::string seconds_of(const Candidate& candidate) {
  return format("{} {:.4g} ms", describe(candidate.options, candidate.mesh), 1e3 * candidate.step_seconds);
}

// Predictions for all strategies that the network takes, the fastest first.
std::vector<Candidate> predict_all(const PlannedRuns& runs, const PlanTarget& target) {
  std::vector<Candidate> candidates;
  for (auto spec = runs.specs.begin() + 1; spec != runs.specs.end(); ++spec) {
    try {
      const Strategy strategy = strategy_for(*spec, runs.info, runs.ranks, target.traits);
      const BatchSizes sizes = batch_sizes(spec->train, spec->strategy, runs.info, runs.ranks);
      const Prediction found = predict(program_spec(*spec, runs.info), strategy, sizes, target);
      candidates.push_back({spec->strategy, found.mesh(), found.step.seconds, found.memory()});
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::config && error.kind() != ErrorKind::internal) throw;
      log::debug(format("no alternative: {}", error.what()));
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.step_seconds < b.step_seconds; });
  return candidates;
}

// On rank 0. Nothing fits: no choice, and why.
std::pair<std::optional<Candidate>, std::string> choose(const std::vector<Candidate>& candidates, std::int64_t memory) {
  const auto fits = [memory](const Candidate& candidate) { return memory == 0 || candidate.memory <= memory; };
  const auto best = std::find_if(candidates.begin(), candidates.end(), fits);
  if (best == candidates.end()) {
    const auto least = std::min_element(candidates.begin(), candidates.end(),
                                        [](const Candidate& a, const Candidate& b) { return a.memory < b.memory; });
    return {{},
            least == candidates.end()
                ? "the network takes no strategy on these ranks"
                : format("no strategy fits into {} of memory a rank; {} needs least, {}", byte_text(memory),
                         describe(least->options, least->mesh), byte_text(least->memory))};
  }
  std::string why = format("strategy: auto takes {} a step", seconds_of(*best));
  const auto next = std::find_if(best + 1, candidates.end(), fits);
  if (next != candidates.end()) why += format("; next {}", seconds_of(*next));
  if (best != candidates.begin()) why += format("; {} does not fit", seconds_of(candidates.front()));
  return {*best, why};
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

ChosenStrategy choose_strategy(const RunSpec& spec, const DataInfo& data, RankDevice& device, RankContext& context) {
  World& world = context.world;
  Backend& backend = *device.backend;
  const PlannedRuns runs = planned_runs(spec, world.size(), data);
  measure_together(runs, device, context);

  std::string chosen, why;
  if (world.rank() == 0) {
    PlanTarget target;
    target.nodes.ranks_per_node = world.local_size();
    target.traits = traits_of(backend);
    target.memory = memory_of_rank(spec.cluster, backend, world.local_size()).bytes;
    const std::unique_ptr<Costs> costs = measured_costs(runs, world.size(), backend, context.threads);
    target.costs = costs.get();
    KernelChoices choices = load_kernel_choices(backend.fingerprint());
    choices.stop_timing();
    target.compile = [&](const std::vector<Program>& programs, int replicas) {
      Compiled compiled = compile(programs, backend, choices);
      compiled.memory.prefetched = batch_bytes(spec.data, data, spec.train.global_batch(runs.ranks),
                                               replica(0, replicas), programs.front().target_forms);
      return compiled;
    };
    const auto [best, reason] = choose(predict_all(runs, target), target.memory);
    if (best) chosen = strategy_text(best->options);
    why = reason;
  }
  chosen = broadcast_text(chosen, 0, world.communicator(), device.host);
  why = broadcast_text(why, 0, world.communicator(), device.host);
  if (chosen.empty()) {
    throw CollectiveError(ErrorKind::resource, why,
                          "use a smaller batch or network, more ranks, or state more memory (cluster.memory)");
  }
  return {read_strategy(chosen), why};
}

}  // namespace trainctl
