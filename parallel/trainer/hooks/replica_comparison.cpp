// Compares replicas during training.
#include "parallel/trainer/hooks/replica_comparison.h"
#include "core/exec/engine.h"
#include "parallel/trainer/loop/training_state.h"

#include <set>
#include <string>
#include <vector>

namespace trainctl {
namespace {

// Returns the weights that are not sharded, so that every replica holds the same elements.
std::vector<NamedTensor> replicated_weights(const Engine& engine) {
  std::vector<NamedTensor> weights = engine.weights();
  const Program& program = engine.program(0).program;
  if (!program.flat.shares(Quantity::parameters)) return weights;
  std::set<std::string> sharded;
  for (const FlatEntry& entry : program.flat.parameters) {
    if (entry.offset < program.flat.trainable_count) sharded.insert(program.tensor(entry.parameter).name);
  }
  std::erase_if(weights, [&](const NamedTensor& tensor) { return sharded.contains(tensor.name); });
  return weights;
}

}  // namespace

ReplicaComparison::ReplicaComparison(std::int64_t every, Engine& engine, Communicator& replicas, int rank,
                                     Stream& stream)
    : every_(every), engine_(engine), stream_(stream), check_(replicated_weights(engine), replicas, rank, stream) {}

void ReplicaComparison::on_pause(const TrainingState& state, std::int64_t before) {
  if (passed_multiple(before, state.step, every_)) compare();
}

void ReplicaComparison::compare() {
  engine_.download();
  check_.compare(stream_);
}

}  // namespace trainctl
