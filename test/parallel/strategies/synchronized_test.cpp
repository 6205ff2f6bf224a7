// Tests that replicas with synchronised batch normalisation learn what one rank learns from all of their samples at
// once.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <random>

#include "test/catch.h"
#include "test/parallel/strategies/outcome.h"

namespace trainctl::synchronized_test {
namespace {

using namespace mesh_outcome;

// The smaller batches leave some ranks without samples.
constexpr std::int64_t batches[] = {12, 12, 7, 12, 2};
constexpr std::int64_t largest = 12;
constexpr std::int64_t width = 8 * 8 * 2;
constexpr int steps = 30;

// A residual network whose normalisations are fused in all ways: with relu; with residual and relu, whose mask is
// stored as bits (16 channels) or read from the output (12 channels); alone; and of rows.
std::string network(bool synchronized, const std::string& activation = "relu") {
  const std::string own = synchronized ? ", synchronized: true" : "";
  return R"(layers:
  - conv2d: {name: c1, filters: 16, kernel_size: 3, padding: same, use_bias: false}
  - batch_normalization: {name: n1, momentum: 0.9)" +
         own + R"(}
  - activation: )" +
         activation + R"(
  - residual:
      name: block
      layers:
        - conv2d: {name: a, filters: 16, kernel_size: 3, padding: same}
        - batch_normalization: {name: n2, momentum: 0.9, center: false)" +
         own + R"(}
        - conv2d: {name: b, filters: 16, kernel_size: 3, padding: same}
        - batch_normalization: {name: n3, momentum: 0.9)" +
         own + R"(}
      activation: )" +
         activation + R"(
  - conv2d: {name: c2, filters: 12, kernel_size: 3, padding: same}
  - residual:
      name: odd
      layers:
        - conv2d: {name: d, filters: 12, kernel_size: 3, padding: same}
        - batch_normalization: {name: n4, momentum: 0.9, epsilon: 1e-2)" +
         own + R"(}
      activation: )" +
         activation + R"(
  - global_average_pooling2d
  - dense: {name: hidden, units: 24}
  - batch_normalization: {name: n5, momentum: 0.9, scale: false, epsilon: 0.1)" +
         own + R"(}
  - dense: {units: 3, activation: softmax}
)";
}

struct Samples {
  std::vector<float> inputs, weights;
  std::vector<std::int32_t> targets;
  std::vector<std::int64_t> numbers;

  // `order` is the order of the samples within the batch.
  explicit Samples(bool weighs, const std::vector<std::int64_t>& order = {}) {
    std::mt19937 random(11);
    std::normal_distribution<float> normal;
    std::vector<std::vector<float>> images(largest);
    std::vector<std::int32_t> classes;
    for (std::vector<float>& image : images) {
      // The statistics of ranks differ.
      const float spread = 0.5f + static_cast<float>(random() % 4), middle = normal(random);
      for (std::int64_t k = 0; k < width; ++k) image.push_back(middle + spread * normal(random));
      classes.push_back(static_cast<std::int32_t>(random() % 3));
    }
    for (std::int64_t i = 0; i < largest; ++i) {
      const auto from = static_cast<std::size_t>(order.empty() ? i : order[static_cast<std::size_t>(i)]);
      inputs.insert(inputs.end(), images[from].begin(), images[from].end());
      targets.push_back(classes[from]);
      // Samples of weight 0 count in statistics; with three ranks, all samples of one rank have weight 0.
      const bool weightless = from >= 4 && from < 8;
      weights.push_back(!weighs ? 1.0f : weightless ? 0.0f : 0.5f + 0.25f * static_cast<float>(from % 3));
      numbers.push_back(static_cast<std::int64_t>(from));
    }
  }
  Batch share(const Share& share) {
    Batch batch;
    const std::int64_t first = share.first, count = share.count;
    batch.inputs = {View{inputs.data(), DType::float32, largest * width}.slice(first * width, count * width)};
    batch.targets = {View{targets.data(), DType::int32, largest}.slice(first, count)};
    batch.weights = View{weights.data(), DType::float32, largest}.slice(first, count);
    batch.samples = View{numbers.data(), DType::int64, largest}.slice(first, count);
    batch.count = count;
    return batch;
  }
};

struct Setting {
  Mesh mesh;
  bool synchronized = true;
  int accumulation = 1;
  bool overlap = false;
  Shard shard = Shard::none;
  std::vector<std::int64_t> order = {};
  bool full_only = false;  // only full batches
  bool weighs = true;      // samples have weights other than 1
};

Outcome train(const Setting& setting) {
  Outcome outcome;
  std::mutex one_at_a_time;
  on_mesh(setting.mesh, [&](Communicator& world) {
    const TestJob job(network(setting.synchronized), "{name: sgd, momentum: 0.9}");
    Strategy strategy{setting.mesh, {}, setting.overlap};
    strategy.options.shard = setting.shard;
    strategy.options.tensor.value = setting.mesh.tensor;
    strategy.options.first_bucket_size.bytes = strategy.options.bucket_size.bytes = 2000;
    const BatchSizes sizes{.training = batches[0],
                           .training_last = setting.full_only ? 0 : batches[2],
                           .training_resumed_last = setting.full_only ? 0 : batches[4],
                           .gradient_accumulation = setting.accumulation};
    RankOfMesh rank(job, with_stages(job, std::move(strategy)), sizes, world, 3);
    Samples samples(setting.weighs, setting.order);
    const auto size_of = [&](int step) { return setting.full_only ? largest : batches[step % 5]; };
    train_rank(rank, samples, steps, 0.02, size_of, one_at_a_time, outcome);
  });
  return outcome;
}

}  // namespace

TEST_CASE("replicas with synchronised statistics learn what one rank learns from the whole batch") {
  const Outcome reference = train({.synchronized = false});
  CHECK(reference.losses[0] > reference.losses[25]);
  SECTION("one rank alone computes the same bits") {
    const Outcome alone = train({});
    CHECK(alone.losses == reference.losses);
    CHECK(alone.weights == reference.weights);
  }
  SECTION("replicas") {
    for (const int ranks : {2, 3, 4}) {
      for (const bool overlap : {false, true}) {
        CAPTURE(ranks, overlap);
        check_same(train({.mesh = {.data = ranks}, .overlap = overlap}), reference);
      }
    }
  }
  SECTION("replicas with one sample, or none") {
    check_same(train({.mesh = {.data = 13}}), reference);
    check_same(train({.mesh = {.data = 13}, .weighs = false}), train({.synchronized = false, .weighs = false}));
  }
  SECTION("without synchronisation they do not") {
    const Outcome apart = train({.mesh = {.data = 2}, .synchronized = false});
    CHECK(std::abs(apart.losses[10] - reference.losses[10]) > 1e-3 * reference.losses[10]);
  }
  SECTION("together with other strategies") {
    for (const Shard shard : {Shard::optimizer, Shard::gradients, Shard::parameters}) {
      CAPTURE(name_of(shard));
      check_same(train({.mesh = {.data = 3}, .overlap = true, .shard = shard}), reference);
    }
    check_same(train({.mesh = {.data = 2, .pipeline = 2}}), reference);
    check_same(train({.mesh = {.data = 2, .tensor = 2}}), reference);
  }
}

TEST_CASE("synchronised statistics of a micro-batch are those of all replicas' samples in it") {
  // Two replicas with two micro-batches, compared with one rank that has the same samples in each micro-batch.
  const std::vector<std::int64_t> order{0, 1, 2, 6, 7, 8, 3, 4, 5, 9, 10, 11};
  const Outcome reference = train({.synchronized = false, .accumulation = 2, .order = order, .full_only = true});
  check_same(train({.mesh = {.data = 2}, .accumulation = 2, .full_only = true}), reference);
  check_same(train({.mesh = {.data = 2, .pipeline = 2}, .accumulation = 2, .full_only = true}), reference);
}

TEST_CASE("gradients through synchronised statistics are slopes of the loss") {
  constexpr int ranks = 3;
  constexpr std::int64_t batch = 7;
  on_mesh({.data = ranks}, [&](Communicator& world) {
    const TestJob job(network(true, "tanh"));
    RankOfMesh rank(job, {{.data = ranks}, {}, false}, {.training = batch}, world, 3);
    Engine& engine = rank.engine;
    Samples samples(true);
    const Batch part = samples.share(share_of(batch, rank.programs.rank()));
    StepResult result;
    const auto loss = [&] {
      engine.upload();
      engine.run(0, part, {}, result);  // with learning rate 0 the weights stay the same
      return static_cast<double>(result.sums[0]);
    };
    loss();
    const Program& program = rank.programs.programs()[0];
    std::vector<std::byte> bytes;
    engine.read_tensor(0, program.step.gradients, bytes);
    std::vector<float> gradients(bytes.size() / sizeof(float));
    std::memcpy(gradients.data(), bytes.data(), bytes.size());
    std::mt19937 random(7);
    std::string problems;
    for (const FlatEntry& entry : program.flat.parameters) {
      const std::string& name = program.tensor(entry.parameter).name;
      const auto tensor = by_name(engine.weights()).at(name);
      for (int draw = 0; draw < 3; ++draw) {
        const auto element = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(entry.count));
        float& value = tensor->view.as<float>()[element];
        const float before = value;
        const auto slope = [&](float step) {
          value = before + step;
          const double above = loss();
          value = before - step;
          const double below = loss();
          value = before;
          return (above - below) / (2 * step);
        };
        const double wide = slope(0x1p-7f), narrow = slope(0x1p-8f);
        if (std::abs(wide - narrow) > 0.02 * std::abs(narrow) + 0.005) continue;  // close to a kink of relu
        const double gradient = gradients[static_cast<std::size_t>(entry.offset + element)];
        if (std::abs(gradient - narrow) > 0.03 * std::abs(narrow) + 0.01) {
          problems += name + ": " + std::to_string(gradient) + " and " + std::to_string(narrow) + "\n";
        }
      }
    }
    if (!problems.empty()) throw std::runtime_error(problems);
  });
}

}  // namespace trainctl::synchronized_test
