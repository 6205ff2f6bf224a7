// Sums the gradients of parameters that layers on several stages share.
#include <iterator>
#include <utility>

#include "core/graph/ops/collectives.h"
#include "core/graph/ops/elementwise/activations.h"
#include "parallel/strategies/pipeline/pipeline.h"

namespace trainctl {
namespace {

// A gradient that is the sum of summands of several stages, or this rank's shard of a bucket of such gradients.
struct SharedGradient {
  std::vector<int> stages;
  TensorId sum = no_tensor;
};

// Returns the shared gradients in the order of the layout, which is a common order of all sets of stages. Therefore
// stages do not wait for each other in a circle.
std::vector<SharedGradient> shared_gradients(Program& program) {
  std::vector<SharedGradient> shared;
  const ParameterLayout& flat = program.flat;
  if (!flat.shares(Quantity::states)) {
    for (const FlatEntry& entry : flat.parameters) {
      if (entry.gradient != no_tensor && !entry.stages.empty()) shared.push_back({entry.stages, entry.gradient});
    }
    return shared;
  }
  auto entry = flat.parameters.begin();
  for (const FlatBucket& bucket : flat.buckets) {
    if (!entry->stages.empty()) {
      shared.push_back({entry->stages, bucket.gradient});
      program.tensors[static_cast<std::size_t>(bucket.gradient)].placements = placed(split_along(0), {MeshAxis::data});
    }
    entry += bucket.entries;
  }
  return shared;
}

Op receive(const Program& program, TensorId tensor, int stage) {
  auto def = std::make_shared<Receive>(MeshAxis::pipeline, stage, program.tensor(tensor).type);
  def->placed = program.tensor(tensor).placements;
  return {std::move(def), {}, {tensor}, program.tensor(tensor).name, {}};
}

Op send(const Program& program, TensorId tensor, int stage) {
  return {std::make_shared<Send>(MeshAxis::pipeline, stage), {tensor}, {tensor}, program.tensor(tensor).name, {}};
}

// The first of the stages adds the summands of all stages, in order, and sends the sum to the other stages, so that all
// stages have the same bits.
void add_up(Program& program, const SharedGradient& shared, int own, std::vector<Op>& ops) {
  const int first = shared.stages.front();
  if (own != first) {
    ops.push_back(send(program, shared.sum, first));
    ops.push_back(receive(program, shared.sum, first));
    return;
  }
  Tensor summand = program.tensor(shared.sum);
  summand.name += "/summand";
  summand.role = Role::activation;
  summand.shard.reset();
  program.tensors.push_back(std::move(summand));
  const auto received = static_cast<TensorId>(program.tensors.size() - 1);
  for (std::size_t i = 1; i < shared.stages.size(); ++i) {
    ops.push_back(receive(program, received, shared.stages[i]));
    ops.push_back({std::make_shared<Add>(), {shared.sum, received}, {shared.sum}, program.tensor(shared.sum).name, {}});
  }
  for (std::size_t i = 1; i < shared.stages.size(); ++i) ops.push_back(send(program, shared.sum, shared.stages[i]));
}

}  // namespace

Program sum_shared_gradients(Program program, const MeshRank& rank, const Strategy&) {
  const int update = program.find(Phase::update);
  if (rank.size(MeshAxis::pipeline) == 1 || update < 0) return program;
  std::vector<Op> ops;
  for (const SharedGradient& shared : shared_gradients(program))
    add_up(program, shared, rank.along(MeshAxis::pipeline), ops);
  std::vector<Op>& reductions = program.segments[static_cast<std::size_t>(update)].ops;
  std::move(ops.begin(), ops.end(), std::back_inserter(reductions));
  return program;
}

}  // namespace trainctl
