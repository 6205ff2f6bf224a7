// Tests that the bytes that each rank writes to a checkpoint, computed from its program only, are those of the shards
// that all ranks agree on (ShardPlan).
#include "parallel/checkpoint/written_bytes.h"

#include "core/exec/named_tensors.h"
#include "parallel/checkpoint/shard_plan.h"
#include "test/catch.h"
#include "test/parallel/strategies/rank_of_mesh.h"

namespace trainctl::test::written_bytes_test {
namespace {

// Two layers share their weights; the kernels and biases do not divide evenly, and a layer is frozen.
constexpr const char* network = R"(freeze: [c1]
layers:
  - conv2d: {name: c1, filters: 6, kernel_size: 3, padding: same}
  - batch_normalization: {name: n1}
  - flatten: {name: flat}
  - dense: {name: d1, units: 70, activation: relu}
  - dense: {name: same, units: 70, activation: relu}
  - dense: {name: d2, units: 70, activation: relu}
  - dense: {name: same, units: 70, activation: relu}
  - dense: {name: d3, units: 5, activation: softmax}
)";

struct Case {
  Mesh mesh;
  Shard shard;
  bool averages;
  const char* optimizer;
};

// The tensors of a rank, without values.
struct Held {
  Program program;
  std::vector<float> memory;
  std::vector<NamedTensor> weights, state;

  Held(const TestJob& job, const Strategy& strategy, int rank) {
    Reader reader;
    program = training_program(job.spec, {2, 1}, reader, parallelism(strategy, rank));
    reader.throw_if_failed();
    const auto all = static_cast<std::size_t>(program.flat.parameter_count + program.flat.statistic_count);
    memory.resize(all * (program.flat.states.size() + 3));
    weights = name_weights(program, memory.data(), memory.data(), memory.data());
    state = name_state(program, memory.data(), program.flat.averages ? memory.data() : nullptr);
  }
};

TEST_CASE("each rank knows the number of bytes that it writes to a checkpoint") {
  const Case each =
      GENERATE(Case{{}, Shard::none, true, "adam"}, Case{{.data = 3}, Shard::none, false, "adam"},
               Case{{.data = 3}, Shard::optimizer, true, "adam"},
               Case{{.data = 4}, Shard::gradients, false, "{name: sgd, momentum: 0.9}"},
               Case{{.data = 3}, Shard::parameters, true, "adam"}, Case{{.data = 2}, Shard::none, true, "adafactor"},
               Case{{.pipeline = 2}, Shard::none, true, "adam"},
               Case{{.data = 2, .tensor = 2}, Shard::parameters, false, "adam"},
               Case{{.data = 2, .pipeline = 2}, Shard::optimizer, true, "adam"},
               Case{{.tensor = 2}, Shard::none, true, "{name: sgd, momentum: 0.9}"});
  TestJob job(network, each.optimizer);
  if (each.averages) job.spec.moving_average = 0.99f;
  Strategy strategy{each.mesh, {}, true};
  strategy.options.shard = each.shard;
  strategy.options.first_bucket_size.bytes = 1000;
  strategy.options.bucket_size.bytes = 4000;
  strategy = with_stages(job, std::move(strategy));
  std::vector<Held> ranks;
  for (int rank = 0; rank < each.mesh.ranks(); ++rank) ranks.emplace_back(job, strategy, rank);
  std::vector<std::vector<NamedTensor>> weights, state;
  for (const Held& held : ranks) {
    weights.push_back(held.weights);
    state.push_back(held.state);
  }
  const ShardPlan of_weights(weights), of_state(state);
  std::int64_t sum = 0;
  for (int rank = 0; rank < each.mesh.ranks(); ++rank) {
    INFO("rank " << rank << " of " << each.mesh.ranks() << ", shard " << static_cast<int>(each.shard));
    const WrittenBytes bytes = written_bytes(ranks[static_cast<std::size_t>(rank)].program, MeshRank(each.mesh, rank));
    CHECK(bytes.weights == of_weights.bytes_of(rank));
    CHECK(bytes.state == of_state.bytes_of(rank));
    sum += bytes.weights + bytes.state;
  }
  CHECK(sum == of_weights.bytes() + of_state.bytes());
  CHECK(of_state.bytes() > 0);
}

}  // namespace
}  // namespace trainctl::test::written_bytes_test
