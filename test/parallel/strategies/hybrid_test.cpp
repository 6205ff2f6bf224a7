// Tests that ranks that split layers, with sharded updates or without, learn what one rank learns on the same
// micro-batches.
#include "test/catch.h"
#include "test/parallel/strategies/mesh_training.h"

namespace trainctl::hybrid_test {
using namespace trainctl::networks;
using namespace trainctl::mesh_training;

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

TEST_CASE("moving averages are split where all parameters are") {
  constexpr const char* table = R"(layers:
  - reversible_embedding: {name: table, input_dim: 208, output_dim: 64}
  - activation: tanh
  - reversible_embedding: {name: table, reverse: true}
)";
  const Case which{"table",
                   [] {
                     Network network(table, {input_of("", {6}, DType::int32)}, "{name: sgd, momentum: 0.9}");
                     network.job.spec.moving_average = 0.9f;
                     return network;
                   },
                   0.02};
  const Outcome reference = train(which, {});
  for (const int ranks : {2, 4}) {
    CAPTURE(ranks);
    compare(train(which, {.mesh = {.tensor = ranks}}), reference);
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
    Setup setup{.mesh = {.data = 2, .tensor = 2}, .shard = shard, .gradient_dtype = CommunicatedDType::bfloat16};
    const Outcome rounded = train(which, setup);
    compare(rounded, train(which, {.micro_batches = 2}), 1e-2);
    setup.overlap = true;
    CHECK(train(which, setup).weights == rounded.weights);
  }
}

}  // namespace trainctl::hybrid_test
