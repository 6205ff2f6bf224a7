// Tests that losses over the whole batch, which replicas gather, give the weights that one rank learns.
#include "test/catch.h"
#include "test/parallel/strategies/mesh_training.h"

namespace trainctl::whole_batch_test {
using namespace trainctl::networks;
using namespace trainctl::mesh_training;
namespace {

// Every pair of samples meets in `pairs`; `center` is one value for the batch.
constexpr const char* contrastive = R"(layers:
  - flatten
  - dense: {name: first, units: 48, activation: tanh}
  - dense: {name: code, units: 36}
  - dense: {name: hidden, units: 40, activation: relu}
  - dense: {name: last, units: 3, activation: softmax}
add_loss:
  pairs: {from: code, whole_batch: true, expression: 'logsumexp(x @ transpose(x) / 8, axis=-1) - sum(x * x, axis=1) / 8'}
  alike: {from: code, whole_batch: true, expression: '-sum((y_true @ transpose(y_true)) / sum(y_true @ transpose(y_true), axis=1, keepdims=True) * log_softmax(x @ transpose(x) / 8, axis=1), axis=1)'}
  center: {from: [code, first], inputs: [a, b], whole_batch: true, weight: 0.5, expression: 'mean(square(mean(a, axis=0))) + mean(b) ** 2'}
)";

const Case which{"contrastive",
                 [] {
                   return Network(contrastive, {input_of("", {8, 8, 2})}, "{name: sgd, momentum: 0.9}");
                 },
                 0.02};

// CLIP: two encoders, whose outputs have no loss of their own.
constexpr const char* clip = R"(inputs: [a, b]
layers:
  - dense: {name: left, from: a, units: 24}
  - dense: {name: hidden, from: b, units: 32, activation: tanh}
  - dense: {name: right, units: 24}
add_loss:
  clip:
    from: [left, right]
    inputs: [x, y]
    whole_batch: true
    expression: >-
      (logsumexp(l2_normalize(x) @ transpose(l2_normalize(y)) / 0.2, axis=1)
      + logsumexp(l2_normalize(y) @ transpose(l2_normalize(x)) / 0.2, axis=1)) / 2
      - sum(l2_normalize(x) * l2_normalize(y), axis=1) / 0.2
)";

const Case pairs{
    "clip",
    [] {
      Network network(clip, {input_of("a", {20}), input_of("b", {30})}, "{name: sgd, momentum: 0.9}", "none");
      network.job.spec.outputs[0].metrics.clear();
      return network;
    },
    0.05};

// A loss that reads positions, which ranks that split layers may divide among them.
constexpr const char* positions = R"(layers:
  - reshape: {target_shape: [8, 16]}
  - dense: {name: up, units: 64, activation: tanh}
  - dense: {name: down, units: 16}
  - global_average_pooling1d
  - dense: {units: 3, activation: softmax}
add_loss:
  center: {from: down, whole_batch: true, expression: 'mean(square(mean(x, axis=0)))'}
)";

const Case of_positions{"positions",
                        [] {
                          return Network(positions, {input_of("", {8, 8, 2})}, "{name: sgd, momentum: 0.9}");
                        },
                        0.02};

std::string error_of(Setup setup, int batch_size, const std::vector<double>& speeds = {}) {
  try {
    const Network network = which.make();
    const BatchSizes sizes{
        .training = batch_size, .gradient_accumulation = setup.micro_batches, .speeds = speeds, .whole_batch = true};
    build_run_programs(network.job.spec, strategy_of(setup), sizes, 0);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("ranks that divide positions learn from a loss over the whole batch what one rank learns", "[positions]") {
  const Outcome reference = train(of_positions, {});
  for (const int ranks : {2, 4, 8}) {  // with 8 ranks, each has one position
    CAPTURE(ranks);
    compare(train(of_positions, {.mesh = {.tensor = ranks}, .sequence_parallel = true}), reference);
  }
}

TEST_CASE("replicas learn from losses over the whole batch what one rank learns") {
  const Outcome reference = train(which, {});
  CHECK(reference.losses.back() < 0.9 * reference.losses.front());
  for (const Mesh& mesh : {Mesh{.data = 2}, Mesh{.data = 5}, Mesh{.tensor = 2}, Mesh{.data = 3, .tensor = 2}}) {
    for (const Shard shard : {Shard::none, Shard::parameters}) {
      if (mesh.data == 1 && shard != Shard::none) continue;
      for (const Recompute recompute : {Recompute::none, Recompute::blocks}) {
        CAPTURE(mesh.data, mesh.tensor, name_of(shard), recompute == Recompute::blocks);
        compare(train(which, {.mesh = mesh, .shard = shard, .overlap = true, .recompute = recompute}), reference);
      }
    }
  }
}

TEST_CASE("replicas learn the codes of pairs without targets as one rank learns them") {
  const Outcome reference = train(pairs, {});
  CHECK(reference.losses.back() < 0.9 * reference.losses.front());
  for (const Mesh& mesh : {Mesh{.data = 2}, Mesh{.data = 4}, Mesh{.data = 2, .tensor = 2}}) {
    CAPTURE(mesh.data, mesh.tensor);
    compare(train(pairs, {.mesh = mesh}), reference);
  }
}

TEST_CASE("losses over the whole batch are refused where a step does not have the whole batch") {
  const auto says = [](const Setup& setup, int batch_size, const std::string& text) {
    CAPTURE(error_of(setup, batch_size));
    CHECK(error_of(setup, batch_size).find(text) != std::string::npos);
  };
  says({.micro_batches = 2}, 12, "use gradient_accumulation 1");
  says({.mesh = {.pipeline = 2}}, 12, "use no pipeline");
  says({.mesh = {.data = 3}}, 2, "a batch of 2 samples leaves one of 3 replicas without a sample");
  CHECK(error_of({.mesh = {.data = 2}}, 12, {1, 100}).find("leaves one of 2 replicas") != std::string::npos);
}

}  // namespace trainctl::whole_batch_test
