// Tests that ranks that split layers, with sharded updates or without, learn what one rank learns on the same
// micro-batches.
#include <map>
#include <mutex>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/parallel/strategies/networks.h"
#include "test/parallel/strategies/rank_of_mesh.h"

namespace trainctl::hybrid_test {
using namespace trainctl::networks;

namespace {

constexpr int steps = 30;

struct Setup {
  Mesh mesh;
  int micro_batches = 1;
  Shard shard = Shard::none;
  bool overlap = false;
  GradientDType gradient_dtype = GradientDType::float32;
};

struct Outcome {
  std::vector<double> losses, accuracies, norms;
  WholeTensors weights, state;
  std::map<std::string, int> shards;  // by tensor: number of ranks of the first replica that hold a shard of it
};

// Small buckets with whole parameters and with parameters that are split along either dimension.
Strategy strategy_of(const Setup& setup) {
  Strategy strategy{setup.mesh, {}, setup.overlap};
  strategy.options.tensor.value = setup.mesh.tensor;
  strategy.options.shard = setup.shard;
  strategy.options.gradient_dtype = setup.gradient_dtype;
  strategy.options.first_bucket_size.bytes = 1000;
  strategy.options.bucket_size.bytes = 6000;
  return strategy;
}

// Trains on the ranks of a mesh, or on one rank with the same micro-batches.
Outcome train(const Case& which, const Setup& setup) {
  Outcome outcome;
  std::mutex one_at_a_time;
  on_mesh(setup.mesh, [&](Communicator& world) {
    auto network = which.make();
    network.job.spec.clip_norm = 1;
    network.job.spec.seed = 3;
    const BatchSizes sizes{.training = batch, .gradient_accumulation = setup.micro_batches};
    const Strategy strategy = with_stages(network.job, strategy_of(setup));
    RankOfMesh rank(network.job, strategy, sizes, world, network.job.spec.seed);
    const Batch part = network.share(rank.programs.rank());
    StepResult result;
    std::vector<double> losses, accuracies, norms;
    for (int step = 0; step < steps; ++step) {
      rank.engine.run(rank.programs.training(batch), part, {which.learning_rate, step, false}, result);
      losses.push_back(result.sums[0] / result.count);
      accuracies.push_back(result.sums[1]);
      norms.push_back(result.gradient_norm);
    }
    rank.engine.download();
    const std::lock_guard lock(one_at_a_time);
    require(outcome.losses.empty() || outcome.losses == losses, "all ranks know the same losses");
    outcome.losses = losses;
    outcome.accuracies = accuracies;
    outcome.norms = norms;
    put_together(rank.engine.weights(), outcome.weights);
    put_together(rank.engine.state(), outcome.state);
    if (rank.programs.rank().along(MeshAxis::data) != 0) return;
    for (const auto* list : {&rank.engine.weights(), &rank.engine.state()}) {
      for (const NamedTensor& tensor : *list) {
        if (!tensor.extent.is_whole()) ++outcome.shards[tensor.name];
      }
    }
  });
  return outcome;
}

// `tolerance` is the relative tolerance of losses.
void compare(const Outcome& outcome, const Outcome& reference, double tolerance = 1e-4) {
  for (std::size_t step = 0; step < steps; ++step) {
    CAPTURE(step);
    CHECK(outcome.losses[step] == Approx(reference.losses[step]).epsilon(tolerance));
    CHECK(outcome.norms[step] == Approx(reference.norms[step]).epsilon(10 * tolerance));
    if (tolerance <= 1e-4) CHECK(outcome.accuracies[step] == reference.accuracies[step]);
  }
  REQUIRE(outcome.weights.size() == reference.weights.size());
  REQUIRE(outcome.state.size() == reference.state.size());
  for (const auto& [name, values] : reference.weights) {
    CAPTURE(name);
    CHECK(largest_difference(outcome.weights.at(name), values) < 2 * tolerance);
  }
  for (const auto& [name, values] : reference.state) {
    CAPTURE(name);
    CHECK(largest_difference(outcome.state.at(name), values) < 20 * tolerance);
  }
}

}  // namespace

TEST_CASE("ranks that split layers learn what one rank learns") {
  for (const Case& which : cases) {
    for (const Mesh& mesh : {Mesh{.tensor = 2}, Mesh{.tensor = 4}, Mesh{.data = 2, .tensor = 2}}) {
      CAPTURE(which.name, mesh.data, mesh.tensor);
      const Outcome reference = train(which, {.micro_batches = mesh.data}), outcome = train(which, {.mesh = mesh});
      CHECK(reference.losses.back() < 0.9 * reference.losses.front());
      compare(outcome, reference);
      CHECK(reference.shards.empty());
      CHECK(outcome.shards.size() >= 4);
      for (const auto& [name, count] : outcome.shards) CHECK(count == mesh.tensor);
    }
  }
}

TEST_CASE("stages whose ranks split layers learn what one rank learns") {
  for (const Case& which : cases) {
    CAPTURE(which.name);
    const Outcome outcome = train(which, {.mesh = {.pipeline = 2, .tensor = 2}, .micro_batches = 2});
    compare(outcome, train(which, {.micro_batches = 2}));
    CHECK(outcome.shards.size() >= 2);
  }
}

TEST_CASE("replicas that split layers and shard optimizer, gradients or parameters learn the same") {
  const Setup setups[] = {
      {.mesh = {.data = 2, .tensor = 2}},
      {.mesh = {.data = 2, .tensor = 2}, .overlap = true},
      {.mesh = {.data = 3, .tensor = 2}, .micro_batches = 2},
      {.mesh = {.data = 2, .pipeline = 2, .tensor = 2}, .micro_batches = 2},
  };
  for (const Case& which : cases) {
    for (Setup setup : setups) {
      const Outcome reference = train(which, {.micro_batches = setup.mesh.data * setup.micro_batches});
      for (const Shard shard : {Shard::optimizer, Shard::gradients, Shard::parameters}) {
        setup.shard = shard;
        CAPTURE(which.name, setup.mesh.data, setup.mesh.pipeline, setup.overlap, name_of(shard));
        compare(train(which, setup), reference);
      }
    }
  }
}

TEST_CASE("gradients of split layers are exchanged in bfloat16 too, and overlap changes no bit") {
  const Case& which = cases[0];
  for (const Shard shard : {Shard::none, Shard::optimizer, Shard::gradients, Shard::parameters}) {
    CAPTURE(name_of(shard));
    Setup setup{.mesh = {.data = 2, .tensor = 2}, .shard = shard, .gradient_dtype = GradientDType::bfloat16};
    const Outcome rounded = train(which, setup);
    compare(rounded, train(which, {.micro_batches = 2}), 1e-2);
    setup.overlap = true;
    CHECK(train(which, setup).weights == rounded.weights);
  }
}

}  // namespace trainctl::hybrid_test
