// Sorts blocks by the bytes that they save relative to their cost, and chooses the first ones.
#include "parallel/trainer/recompute_choice.h"

#include <algorithm>
#include <iterator>

#include "core/base/error.h"
#include "core/base/format.h"
#include "parallel/strategies/op_cost.h"
#include "parallel/strategies/programs.h"
#include "parallel/strategies/recompute/blocks.h"

namespace trainctl {
namespace {

// Returns the blocks of a rank's program for a full batch, the best first.
std::vector<RecomputableBlock> blocks_of(const ProgramSpec& spec, Strategy strategy, const BatchSizes& sizes, int rank,
                                         const ByteCosts& byte_cost) {
  strategy.options.recompute = Recompute::none;
  strategy.options.shard = Shard::none;  // with sharding, programs gather and reduce within a pass
  const RunPrograms programs = build_run_programs(spec, strategy,
                                                  {.training = sizes.training,
                                                   .gradient_accumulation = sizes.gradient_accumulation,
                                                   .speeds = sizes.speeds,
                                                   .shards = sizes.shards},
                                                  rank);
  const Program& program = programs.programs().front();
  std::vector<RecomputableBlock> blocks = recomputable_blocks(program);
  const auto bytes_per_cost = [&](const RecomputableBlock& block) {
    double cost = 0;
    for (const Op& op : block.ops) cost += cost_of(op, program.tensors, byte_cost);
    return static_cast<double>(block.saved) / std::max(cost, 1.0);
  };
  std::ranges::stable_sort(blocks, std::greater(), bytes_per_cost);
  return blocks;
}

}  // namespace

std::string recomputed_text(const std::set<std::string>& blocks) {
  std::string names;
  for (const std::string& name : blocks) names += (names.empty() ? "" : ", ") + name;
  return format("recomputed for the backward pass, to save memory: {}\n", names);
}

std::set<std::string> choose_recomputed(const ProgramSpec& spec, Strategy strategy, const BatchSizes& sizes,
                                        std::int64_t limit, const ByteCosts& byte_cost,
                                        const std::function<std::int64_t(const std::vector<Program>&)>& memory_of) {
  if (limit == 0 || sizes.training == 0) return {};
  std::set<std::string> chosen;  // blocks that the previous ranks need
  for (const int rank : ranks_with_own_programs(sizes, strategy.mesh)) {
    const auto fits = [&](const std::set<std::string>& names) {
      strategy.recomputed = names;
      return memory_of(build_run_programs(spec, strategy, sizes, rank).programs()) <= limit;
    };
    if (fits(chosen)) continue;
    const std::vector<RecomputableBlock> blocks = blocks_of(spec, strategy, sizes, rank, byte_cost);
    const auto with_best = [&](std::size_t count) {
      std::set<std::string> names = chosen;
      for (std::size_t i = 0; i < count; ++i) names.insert(blocks[i].name);
      return names;
    };
    std::size_t too_few = 0, enough = blocks.size();  // two counts of the best blocks
    while (too_few + 1 < enough) {
      const std::size_t middle = (too_few + enough) / 2;
      (fits(with_best(middle)) ? enough : too_few) = middle;
    }
    std::set<std::string> names = with_best(enough);
    for (std::size_t i = enough; i-- > 0;) {
      std::set<std::string> fewer = names;
      if (!chosen.contains(blocks[i].name) && fewer.erase(blocks[i].name) > 0 && fits(fewer)) names = std::move(fewer);
    }
    chosen = std::move(names);
  }
  return chosen;
}

}  // namespace trainctl
