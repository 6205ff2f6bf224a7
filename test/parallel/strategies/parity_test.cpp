// Tests that n ranks, with and without overlap and gradient accumulation, end with the weights of one rank on the whole
// batch.
#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <thread>

#include "core/backend/choices.h"
#include "core/backend/cpu/cpu_backend.h"
#include "core/backend/immediate_stream.h"
#include "core/exec/engine.h"
#include "parallel/comm/communicators.h"
#include "parallel/strategies/programs.h"
#include "parallel/trainer/evaluate.h"
#include "test/catch.h"
#include "test/core/program/job.h"

namespace trainctl::parity_test {
namespace {

// The last batch leaves one of three ranks without samples. Of sixteen ranks, four have no sample of a full batch, and
// one of these four has a sample of the batch of 7.
constexpr std::int64_t batches[] = {12, 12, 7, 2};
constexpr std::int64_t width = 8 * 8 * 2;

struct Samples {
  std::vector<float> inputs, weights;
  std::vector<std::int32_t> targets;
  std::vector<std::int64_t> numbers;

  Samples() {
    std::mt19937 random(11);
    std::normal_distribution<float> normal;
    for (std::int64_t i = 0; i < 33; ++i) {
      for (std::int64_t k = 0; k < width; ++k) inputs.push_back(normal(random));
      targets.push_back(static_cast<std::int32_t>(random() % 3));
      weights.push_back(i == 5 ? 0.0f : 1.0f);  // a skipped sample
      numbers.push_back(i);
    }
  }
  Batch share(std::int64_t first, std::int64_t count) {
    Batch batch;
    batch.inputs = {View{inputs.data(), DType::float32, 33 * width}.slice(first * width, count * width)};
    batch.targets = {View{targets.data(), DType::int32, 33}.slice(first, count)};
    batch.weights = View{weights.data(), DType::float32, 33}.slice(first, count);
    batch.samples = View{numbers.data(), DType::int64, 33}.slice(first, count);
    batch.count = count;
    return batch;
  }
};

struct Outcome {
  std::vector<float> weights;
  std::vector<double> losses, norms;
  bool abandoned = false;  // whether the step for which one rank had no data was abandoned
  double evaluated = 0;    // the mean loss after training
};

// The samples in batches of 12, 12 and 2, as a source of batches.
class Source final : public BatchSource {
 public:
  Source(Samples& samples, MeshRank rank) : samples_(samples), rank_(rank) {}
  const Batch& next() override {
    const std::int64_t batch = step_ < 2 ? batches[0] : batches[3];
    const Share share = share_of(batch, rank_);
    batch_ = samples_.share(first_ + share.first, share.count);
    first_ += batch;
    batch_.global_count = batch;
    batch_.last_of_epoch = ++step_ == 3;
    return batch_;
  }
  DataPosition position() const override { return {}; }
  std::int64_t samples_per_epoch() const override { return 26; }
  std::int64_t batch_size() const override { return 12; }
  std::int64_t last_batch_size() const override { return 2; }
  std::int64_t batch_bytes() const override { return 0; }  // batches are views of the samples

 private:
  Samples& samples_;
  MeshRank rank_;
  Batch batch_;
  std::int64_t first_ = 0;
  int step_ = 0;
};

double evaluate_all(Engine& engine, const RunPrograms& programs, Samples& samples, Communicator& communicator) {
  ImmediateStream stream;
  Source source(samples, replica(communicator.rank(), communicator.size()));
  return evaluate(engine, programs, source, communicator, stream)->values.at("loss");
}

// The shapes of the parameters by name.
std::map<std::string, Shape> shapes_of(const ProgramSpec& spec) {
  Reader reader;
  const Program program = evaluation_program(spec, 1, reader);
  std::map<std::string, Shape> shapes;
  for (const FlatEntry& entry : program.flat.parameters) {
    shapes[program.tensor(entry.parameter).name] = program.tensor(entry.parameter).type.shape;
  }
  return shapes;
}

// All weights, put together from the ranks' shards if they are sharded.
std::vector<float> gathered(const ProgramSpec& spec, const std::vector<NamedTensor>& held, Communicator& communicator) {
  const auto by = by_name(held);
  ImmediateStream stream;
  std::vector<float> all;
  for (const auto& [name, shape] : shapes_of(spec)) {
    std::vector<float> values(static_cast<std::size_t>(shape.count()));
    const View view{values.data(), DType::float32, shape.count()};
    const auto found = by.find(name);
    const bool in_parts = found == by.end() || !found->second->extent.is_whole();
    if (found != by.end()) {
      copy_common(shape, found->second->extent, found->second->view, TensorExtent(), view);
    }
    // A shard that happens to be the whole tensor is on one rank only: the other ranks add zeros.
    double parts = in_parts ? 1 : 0;
    communicator.all_reduce({&parts, DType::float64, 1}, Reduction::sum, stream);
    if (parts > 0) communicator.all_reduce(view, Reduction::sum, stream);
    stream.synchronize();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

// Rank `rank_without_data`, unless it is -1, has no data for an additional step before the third, and requests a stop.
Outcome train(Communicator& communicator, int accumulation, bool overlap, int rank_without_data, Shard shard) {
  TestJob job(
      "layers: [flatten, {dense: {units: 16, activation: relu}}, {dropout: {rate: 0.3}}, "
      "{dense: {units: 3, activation: softmax}}]",
      "{name: sgd, momentum: 0.9, nesterov: true, weight_decay: 1e-2}");
  job.spec.clip_norm = 0.5;
  const int rank = communicator.rank(), ranks = communicator.size();
  const auto backend = make_cpu_backend({});
  KernelChoices choices;
  choices.stop_timing();  // all runs compute with the same kernels
  StrategyOptions options;
  options.first_bucket_size.bytes = options.bucket_size.bytes = 100;
  options.shard = shard;
  const BatchSizes sizes{.training = batches[0],
                         .training_last = batches[2],
                         .evaluation = batches[0],
                         .evaluation_last = batches[3],
                         .training_resumed_last = batches[3],
                         .gradient_accumulation = accumulation};
  Reader reader;
  const RunPrograms programs(job.spec, {{.data = ranks}, options, overlap}, sizes, rank, reader);
  reader.throw_if_failed();
  Compiled compiled = compile(programs.programs(), *backend, choices);
  Engine engine(*backend, communicator, std::move(compiled));
  std::mt19937 random(5);
  std::uniform_real_distribution<float> uniform(-0.3f, 0.3f);
  for (const auto& [name, shape] : shapes_of(job.spec)) {
    std::vector<float> values(static_cast<std::size_t>(shape.count()));
    for (float& value : values) value = uniform(random);
    const auto held = by_name(engine.weights());
    const auto found = held.find(name);
    if (found == held.end()) continue;
    const View whole{values.data(), DType::float32, shape.count()};
    copy_common(shape, TensorExtent(), whole, found->second->extent, found->second->view);
  }
  engine.upload();

  Outcome outcome;
  Samples samples;
  StepResult result;
  std::int64_t first = 0;
  for (int step = 0; step < 4; ++step) {
    if (step == 2 && rank_without_data >= 0) {
      const Share share = share_of(batches[step], replica(rank, ranks));
      Samples nothing;
      std::fill(nothing.inputs.begin(), nothing.inputs.end(), 0.0f);
      std::fill(nothing.weights.begin(), nothing.weights.end(), std::nanf(""));
      const bool here = rank == rank_without_data;
      const Batch batch = (here ? nothing : samples).share(share.first, share.count);
      engine.run(step, batch, {.learning_rate = 0.2, .step = step, .stop = here, .abandons = here}, result);
      outcome.abandoned = result.abandoned && result.stop;
    }
    const Share share = share_of(batches[step], replica(rank, ranks));
    const Batch batch = samples.share(first + share.first, share.count);
    engine.run(programs.training(batches[step]), batch, {0.2, step, false}, result);
    outcome.losses.push_back(result.sums[0] / result.count);
    outcome.norms.push_back(result.gradient_norm);
    first += batches[step];
  }
  outcome.evaluated = evaluate_all(engine, programs, samples, communicator);
  engine.download();
  outcome.weights = gathered(job.spec, engine.weights(), communicator);
  return outcome;
}

std::vector<Outcome> train_on(int ranks, int accumulation, bool overlap, int rank_without_data = -1,
                              Shard shard = Shard::none) {
  auto communicators = thread_communicators(ranks);
  std::vector<Outcome> outcomes(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < outcomes.size(); ++r) {
    threads.emplace_back(
        [&, r] { outcomes[r] = train(*communicators[r], accumulation, overlap, rank_without_data, shard); });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

}  // namespace

TEST_CASE("ranks, overlap and accumulation do not change what is learnt") {
  const Outcome reference = train_on(1, 1, false)[0];
  REQUIRE(reference.weights.size() == width * 16 + 16 + 16 * 3 + 3);
  CHECK(reference.norms[0] > 0.5);  // clipping is at work
  for (const auto& [ranks, accumulation] : {std::pair{1, 3}, {2, 1}, {2, 2}, {3, 1}, {4, 3}, {16, 1}, {33, 1}}) {
    for (const auto& [overlap, shard] : {std::pair{false, Shard::none},
                                         {true, Shard::none},
                                         {false, Shard::optimizer},
                                         {true, Shard::optimizer},
                                         {false, Shard::gradients},
                                         {true, Shard::gradients},
                                         {false, Shard::parameters},
                                         {true, Shard::parameters}}) {
      const auto outcomes = train_on(ranks, accumulation, overlap, -1, shard);
      for (const Outcome& outcome : outcomes) {
        CAPTURE(ranks, accumulation, overlap, name_of(shard));
        CHECK(outcome.weights == outcomes[0].weights);  // replicas hold the same bits
        REQUIRE(outcome.weights.size() == reference.weights.size());
        double difference = 0;
        for (std::size_t i = 0; i < reference.weights.size(); ++i) {
          difference = std::max<double>(difference, std::abs(outcome.weights[i] - reference.weights[i]));
        }
        CHECK(difference < 1e-5);
        CHECK(outcome.evaluated == Approx(reference.evaluated).epsilon(1e-5));
        for (std::size_t step = 0; step < 4; ++step) {
          CHECK(outcome.losses[step] == Approx(reference.losses[step]).epsilon(1e-5));
          CHECK(outcome.norms[step] == Approx(reference.norms[step]).epsilon(1e-4));
        }
      }
    }
  }
}

TEST_CASE("a step for which one rank has no data is skipped on all ranks, bit for bit") {
  for (const auto& [ranks, accumulation] : {std::pair{1, 1}, {2, 2}, {3, 1}}) {
    for (const bool overlap : {false, true}) {
      const Outcome whole = train_on(ranks, accumulation, overlap)[0];
      CHECK_FALSE(whole.abandoned);
      for (const Outcome& outcome : train_on(ranks, accumulation, overlap, ranks - 1)) {
        CAPTURE(ranks, accumulation, overlap);
        CHECK(outcome.abandoned);
        CHECK(outcome.weights == whole.weights);
      }
    }
  }
}

}  // namespace trainctl::parity_test
