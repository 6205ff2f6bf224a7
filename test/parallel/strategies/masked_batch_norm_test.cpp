// Tests that replicas with synchronised batch normalisation after a padding mask learn what one rank learns from all of
// their samples at once, although the ranks see different numbers of positions.
#include <cmath>
#include <mutex>
#include <random>

#include "test/catch.h"
#include "test/parallel/strategies/outcome.h"

namespace trainctl::masked_batch_norm_test {
namespace {

using namespace mesh_outcome;

// The smaller batches leave some ranks without samples.
constexpr std::int64_t batches[] = {12, 12, 7, 12, 2};
constexpr std::int64_t largest = 12, positions = 6;
constexpr int steps = 20;

// The normalisations are fused with relu, and with residual and relu; the last one is alone.
std::string network(bool synchronized) {
  const std::string own = synchronized ? ", synchronized: true" : "";
  return R"(layers:
  - embedding: {name: e, input_dim: 9, output_dim: 8, mask_zero: true}
  - dense: {name: a, units: 16}
  - batch_normalization: {name: n1, momentum: 0.9)" +
         own + R"(}
  - activation: relu
  - residual:
      name: block
      layers:
        - dense: {name: b, units: 16}
        - batch_normalization: {name: n2, momentum: 0.9)" +
         own + R"(}
      activation: relu
  - dense: {name: c, units: 12, activation: tanh}
  - batch_normalization: {name: n3, momentum: 0.9, center: false, epsilon: 0.1)" +
         own + R"(}
  - dense: {units: 3, activation: softmax}
)";
}

struct Samples {
  std::vector<std::int32_t> tokens, targets;
  std::vector<float> weights;
  std::vector<std::int64_t> numbers;

  // `order` is the order of the samples within the batch.
  explicit Samples(const std::vector<std::int64_t>& order) {
    std::mt19937 random(13);
    std::vector<std::vector<std::int32_t>> all(largest), classes(largest);
    for (std::size_t i = 0; i < all.size(); ++i) {
      // Samples have different numbers of tokens; those of two samples all are padding.
      const std::size_t shown = i == 1 || i == 9 ? 0 : 1 + i % positions;
      for (std::size_t k = 0; k < positions; ++k) {
        const auto token = static_cast<std::int32_t>(1 + random() % 8);
        all[i].push_back((k + i) % positions < shown ? token : 0);
        classes[i].push_back(static_cast<std::int32_t>(random() % 3));
      }
    }
    for (std::int64_t i = 0; i < largest; ++i) {
      const auto from = static_cast<std::size_t>(order.empty() ? i : order[static_cast<std::size_t>(i)]);
      tokens.insert(tokens.end(), all[from].begin(), all[from].end());
      targets.insert(targets.end(), classes[from].begin(), classes[from].end());
      // Samples of weight 0 count in statistics; with three ranks, all samples of one rank have weight 0.
      weights.push_back(from >= 4 && from < 8 ? 0.0f : 0.5f + 0.25f * static_cast<float>(from % 3));
      numbers.push_back(static_cast<std::int64_t>(from));
    }
  }
  Batch share(const Share& share) {
    const auto part = [&](void* first, DType dtype, std::int64_t each) {
      return View{first, dtype, largest * each}.slice(share.first * each, share.count * each);
    };
    Batch batch;
    batch.inputs = {part(tokens.data(), DType::int32, positions)};
    batch.targets = {part(targets.data(), DType::int32, positions)};
    batch.weights = part(weights.data(), DType::float32, 1);
    batch.samples = part(numbers.data(), DType::int64, 1);
    batch.count = share.count;
    return batch;
  }
};

struct Setting {
  Mesh mesh;
  bool synchronized = true;
  int accumulation = 1;
  Shard shard = Shard::none;
  std::vector<std::int64_t> order = {};
  bool full_only = false;  // only full batches
  int logical_shards = 0;  // of reproducible mode, if it is not 0
};

Outcome train(const Setting& setting) {
  Outcome outcome;
  std::mutex one_at_a_time;
  on_mesh(setting.mesh, [&](Communicator& world) {
    TestJob job(network(setting.synchronized), "{name: sgd, momentum: 0.9}");
    job.spec.inputs[0].sample = {positions};
    job.spec.inputs[0].format.dtype = DType::int32;
    job.spec.outputs[0].target.classes = 3;
    job.spec.outputs[0].target.shape = {positions};
    Strategy strategy{setting.mesh, {}, true};
    strategy.options.shard = setting.shard;
    if (setting.logical_shards != 0) strategy.options.reproducible.emplace().shards.value = setting.logical_shards;
    strategy.options.tensor.value = setting.mesh.tensor;
    strategy.options.first_bucket_size.bytes = strategy.options.bucket_size.bytes = 500;
    BatchSizes sizes{.training = batches[0],
                     .training_last = setting.full_only ? 0 : batches[2],
                     .training_resumed_last = setting.full_only ? 0 : batches[4],
                     .gradient_accumulation = setting.accumulation};
    if (setting.logical_shards != 0) {
      sizes.shards = {setting.logical_shards, largest / setting.logical_shards};
      sizes.gradient_accumulation = setting.logical_shards / setting.mesh.data;
    }
    RankOfMesh rank(job, with_stages(job, std::move(strategy)), sizes, world, 3);
    Samples samples(setting.order);
    const auto size_of = [&](int step) { return setting.full_only ? largest : batches[step % 5]; };
    train_rank(rank, samples, steps, 0.05, size_of, one_at_a_time, outcome);
  });
  return outcome;
}

}  // namespace

TEST_CASE("replicas with masked, synchronised statistics learn what one rank learns from the whole batch") {
  const Outcome reference = train({.synchronized = false});
  CHECK(reference.losses[0] > reference.losses[15]);
  for (const int ranks : {1, 2, 3, 4, 13}) {
    CAPTURE(ranks);
    check_same(train({.mesh = {.data = ranks}}), reference);
  }
  const Outcome apart = train({.mesh = {.data = 2}, .synchronized = false});
  CHECK(std::abs(apart.losses[10] - reference.losses[10]) > 1e-3 * reference.losses[10]);
}

TEST_CASE("masked statistics go together with other strategies") {
  const Outcome reference = train({.synchronized = false});
  for (const Shard shard : {Shard::optimizer, Shard::gradients, Shard::parameters}) {
    CAPTURE(name_of(shard));
    check_same(train({.mesh = {.data = 3}, .shard = shard}), reference);
  }
  check_same(train({.mesh = {.data = 2, .pipeline = 2}}), reference);
  check_same(train({.mesh = {.data = 2, .tensor = 2}}), reference);
  check_same(train({.mesh = {.tensor = 4}, .synchronized = false}), reference);
}

TEST_CASE("masked statistics of a micro-batch are those of the positions in it") {
  // Two replicas with two micro-batches, compared with one rank that has the same samples in each micro-batch.
  const std::vector<std::int64_t> order{0, 1, 2, 6, 7, 8, 3, 4, 5, 9, 10, 11};
  const Outcome reference = train({.synchronized = false, .accumulation = 2, .order = order, .full_only = true});
  check_same(train({.mesh = {.data = 2}, .accumulation = 2, .full_only = true}), reference);
  check_same(train({.mesh = {.data = 2, .pipeline = 2}, .accumulation = 2, .full_only = true}), reference);
}

TEST_CASE("masked statistics of logical shards are the same bits on any number of ranks") {
  const Outcome reference = train({.synchronized = false, .full_only = true, .logical_shards = 4});
  for (const int ranks : {2, 4}) {
    CAPTURE(ranks);
    const Outcome outcome =
        train({.mesh = {.data = ranks}, .synchronized = false, .full_only = true, .logical_shards = 4});
    CHECK(outcome.losses == reference.losses);
    CHECK(outcome.weights == reference.weights);
  }
}

}  // namespace trainctl::masked_batch_norm_test
