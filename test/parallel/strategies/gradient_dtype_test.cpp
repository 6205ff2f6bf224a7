// Compares gradients that are exchanged as bfloat16 with their definition, bit for bit: every replica's gradient is
// rounded, the summands are added in float32 in the order of the replicas, and the sum is rounded once more.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <random>

#include "parallel/comm/communicators.h"
#include "parallel/strategies/communication_check/communications.h"
#include "test/catch.h"
#include "test/parallel/strategies/rank_of_mesh.h"

namespace trainctl::gradient_dtype_test {
namespace {

constexpr std::int64_t width = 8 * 8 * 2;
constexpr double rate = 0.125;
constexpr int steps = 3;
// A kernel with 65 columns, so that there are gaps between the parameters, and shards cut through them.
constexpr const char* network = R"(layers:
  - flatten
  - dense: {name: first, units: 65, activation: tanh}
  - dense: {name: second, units: 48, activation: tanh}
  - dense: {name: last, units: 3, activation: softmax}
)";

struct Samples {
  std::vector<float> inputs, weights;
  std::vector<std::int32_t> targets;
  std::vector<std::int64_t> numbers;

  explicit Samples(std::int64_t count) : weights(static_cast<std::size_t>(count), 1.0f) {
    std::mt19937 random(29);
    std::normal_distribution<float> normal;
    for (std::int64_t i = 0; i < count * width; ++i) inputs.push_back(normal(random));
    for (std::int64_t i = 0; i < count; ++i) targets.push_back(static_cast<std::int32_t>(random() % 3));
    for (std::int64_t i = 0; i < count; ++i) numbers.push_back(i);
  }
  Batch share(const Share& share) {
    const auto count = static_cast<std::int64_t>(targets.size());
    Batch batch;
    batch.inputs = {View{inputs.data(), DType::float32, count * width}.slice(share.first * width, share.count * width)};
    batch.targets = {View{targets.data(), DType::int32, count}.slice(share.first, share.count)};
    batch.weights = View{weights.data(), DType::float32, count}.slice(share.first, share.count);
    batch.samples = View{numbers.data(), DType::int64, count}.slice(share.first, share.count);
    batch.count = share.count;
    return batch;
  }
};

using Weights = WholeTensors;

// Rounds to the nearest bfloat16, ties to even.
float rounded(float value) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t lost = bits & 0xffffu, half = 0x8000u;
  bits &= 0xffff0000u;
  if (lost > half || (lost == half && (bits & 0x10000u) != 0)) bits += 0x10000u;
  return std::bit_cast<float>(bits);
}

struct Setting {
  Mesh mesh;
  std::int64_t batch = 12;
  int accumulation = 1;
  bool overlap = false;
  Shard shard = Shard::none;
};

Strategy strategy_of(const Setting& setting, CommunicatedDType dtype = CommunicatedDType::bfloat16) {
  Strategy strategy{setting.mesh, {}, setting.overlap};
  strategy.options.gradient_dtype = dtype;
  strategy.options.shard = setting.shard;
  strategy.options.tensor.value = setting.mesh.tensor;
  strategy.options.first_bucket_size.bytes = 3000;
  strategy.options.bucket_size.bytes = 14000;
  return strategy;
}

RunPrograms programs_of(const TestJob& job, const Setting& setting, const Strategy& strategy, int rank) {
  return programs_on(job, strategy, {.training = setting.batch, .gradient_accumulation = setting.accumulation}, rank);
}

// The gradients, by parameter, that a single rank computes of a share: sums over its samples.
Weights gradients_of(const TestJob& job, Samples& samples, const Share& share, int micro_batches,
                     const Weights& weights) {
  if (share.count == 0) return {};
  Reader reader;
  const Program program = training_program(job.spec, {share.count / micro_batches, micro_batches}, reader);
  reader.throw_if_failed();
  const auto backend = make_cpu_backend({});
  const auto communicator = solo_communicator();
  KernelChoices choices;
  choices.stop_timing();
  Engine engine(*backend, *communicator, compile({program}, *backend, choices));
  for (const NamedTensor& tensor : engine.weights()) {
    std::copy(weights.at(tensor.name).begin(), weights.at(tensor.name).end(), tensor.view.as<float>());
  }
  engine.upload();
  StepResult result;
  engine.run(0, samples.share(share), {}, result);
  std::vector<std::byte> bytes;
  engine.read_tensor(0, program.step.gradients, bytes);
  const auto* all = reinterpret_cast<const float*>(bytes.data());
  Weights gradients;
  for (const FlatEntry& entry : program.flat.parameters) {
    gradients[program.tensor(entry.parameter).name].assign(all + entry.offset, all + entry.offset + entry.count);
  }
  return gradients;
}

Weights initial_weights(const TestJob& job) {
  const auto backend = make_cpu_backend({});
  const auto communicator = solo_communicator();
  KernelChoices choices;
  choices.stop_timing();
  Engine engine(*backend, *communicator, compile({job.training(1)}, *backend, choices));
  initialize_weights(job.spec, 5, engine.weights());
  Weights weights;
  put_together(engine.weights(), weights);
  return weights;
}

// The weights by definition. With sharded updates the sums are not rounded: each rank keeps those of its shard.
Weights defined(const TestJob& job, const Setting& setting) {
  Weights weights = initial_weights(job);
  Samples samples(setting.batch);
  for (int step = 0; step < steps; ++step) {
    Weights sums;
    for (int rank = 0; rank < setting.mesh.data; ++rank) {
      const Share share = share_of(setting.batch, replica(rank, setting.mesh.data));
      const Weights own = gradients_of(job, samples, share, setting.accumulation, weights);
      for (const auto& [name, values] : weights) {
        std::vector<float>& sum = sums[name];
        sum.resize(values.size());
        for (std::size_t i = 0; i < sum.size() && !own.empty(); ++i) {
          const float summand = rounded(own.at(name)[i]);
          sum[i] = rank == 0 ? summand : sum[i] + summand;
        }
      }
    }
    for (auto& [name, values] : weights) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        const float sum = setting.shard == Shard::none ? rounded(sums[name][i]) : sums[name][i];
        values[i] -= static_cast<float>(rate) * (sum * (1.0f / static_cast<float>(setting.batch)));
      }
    }
  }
  return weights;
}

// The weights that the ranks of a mesh learn. put_together() requires that replicas hold the same bits.
Weights trained(const TestJob& job, const Setting& setting) {
  Weights all;
  std::mutex one_at_a_time;
  on_mesh(setting.mesh, [&](Communicator& world) {
    const BatchSizes sizes{.training = setting.batch, .gradient_accumulation = setting.accumulation};
    RankOfMesh rank(job, with_stages(job, strategy_of(setting)), sizes, world);
    Samples samples(setting.batch);
    StepResult result;
    for (int step = 0; step < steps; ++step) {
      const Batch part = samples.share(share_of(setting.batch, rank.programs.rank()));
      rank.engine.run(rank.programs.training(setting.batch), part, {rate, step, false}, result);
      require(result.count == static_cast<double>(setting.batch), "the sums are those of all ranks, in float32");
    }
    rank.engine.download();
    const std::lock_guard lock(one_at_a_time);
    put_together(rank.engine.weights(), all);
  });
  return all;
}

// The bytes that a rank sends in a step over the data axis, as a ring would send them.
double bytes_sent(const Program& program) {
  double bytes = 0;
  for (const Communication& communication : communications_of(program)) {
    using Kind = Communication::Kind;
    const double size = static_cast<double>(communication.count * size_of(communication.dtype));
    if (communication.axis != MeshAxis::data || communication.kind == Kind::wait) continue;
    if (communication.op->name == "sums") continue;  // a few bytes of the step's results
    bytes += communication.kind == Kind::all_reduce ? 2 * size : size;
  }
  return bytes;
}

}  // namespace

TEST_CASE("gradients in bfloat16 are rounded, summed in float32 and rounded again, bit for bit") {
  const TestJob job(network, "sgd");
  for (const int ranks : {2, 3, 4}) {
    for (const auto& [batch, accumulation] : {std::pair<std::int64_t, int>{12, 1}, {24, 2}, {7, 1}, {2, 1}}) {
      const Weights expected = defined(job, {{.data = ranks}, batch, accumulation});
      for (const bool overlap : {false, true}) {
        CAPTURE(ranks, batch, accumulation, overlap);
        CHECK(trained(job, {{.data = ranks}, batch, accumulation, overlap}) == expected);
      }
    }
  }
}

TEST_CASE("sharded updates use the sums of bfloat16 gradients before they are rounded again") {
  const TestJob job(network, "sgd");
  for (const int ranks : {2, 3}) {
    for (const Shard shard : {Shard::optimizer, Shard::gradients, Shard::parameters}) {
      const Weights expected = defined(job, {{.data = ranks}, 12, 1, false, shard});
      for (const bool overlap : {false, true}) {
        CAPTURE(ranks, name_of(shard), overlap);
        CHECK(trained(job, {{.data = ranks}, 12, 1, overlap, shard}) == expected);
      }
    }
  }
}

TEST_CASE("bfloat16 gradients work with pipelines and tensor parallelism") {
  const TestJob job(network, "sgd");
  const Weights expected = defined(job, {{.data = 2}});
  for (const Mesh& mesh : {Mesh{.data = 2, .pipeline = 2}, Mesh{.data = 2, .tensor = 2}}) {
    for (const bool overlap : {false, true}) {
      CAPTURE(mesh.pipeline, mesh.tensor, overlap);
      const Weights weights = trained(job, {mesh, 12, 1, overlap});
      REQUIRE(weights.size() == expected.size());
      for (const auto& [name, values] : expected) {
        CAPTURE(name);
        REQUIRE(weights.at(name).size() == values.size());
        // A sum in another order may round to the next bfloat16 number.
        for (std::size_t i = 0; i < values.size(); ++i) CHECK(std::abs(weights.at(name)[i] - values[i]) < 1e-3);
      }
    }
  }
}

TEST_CASE("bfloat16 gradients halve the bytes that replicas exchange") {
  const TestJob job(network, "sgd");
  for (const Shard shard : {Shard::none, Shard::optimizer}) {
    for (const bool overlap : {false, true}) {
      const Setting setting{{.data = 4}, 12, 1, overlap, shard};
      const auto sent = [&](CommunicatedDType dtype) {
        const RunPrograms programs = programs_of(job, setting, strategy_of(setting, dtype), 1);
        const Program& program = programs.programs()[0];
        double bytes = bytes_sent(program);
        if (shard == Shard::optimizer) bytes -= 4.0 * static_cast<double>(program.flat.trainable_count);  // parameters
        return bytes;
      };
      CAPTURE(name_of(shard), overlap);
      const double whole = sent(CommunicatedDType::float32);
      CHECK(whole > 0);
      CHECK(sent(CommunicatedDType::bfloat16) == Approx(whole / 2).epsilon(0.01));
    }
  }
}

}  // namespace trainctl::gradient_dtype_test
