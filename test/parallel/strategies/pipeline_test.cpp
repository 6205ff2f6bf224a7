// Tests that stages on several ranks learn what one rank learns on the same micro-batches.
#include "parallel/strategies/pipeline/pipeline.h"
#include "core/metrics/choices.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <random>

#include "core/backend/immediate_stream.h"
#include "core/base/format.h"
#include "core/graph/ops/collectives.h"
#include "parallel/trainer/evaluate.h"
#include "test/catch.h"
#include "test/parallel/strategies/rank_of_mesh.h"

namespace trainctl::pipeline_test {
namespace {

// With micro-batches of four or six samples, the last batch has the same micro-batches on one rank as on two replicas;
// with three samples, a micro-batch of two is left over. One of two replicas has no sample of the smallest batch.
constexpr std::int64_t full = 24, last = 8, smallest = 1, steps = 30;

// A network, and the kind of its random samples.
struct Task {
  std::string name;
  std::string network;
  std::vector<ModelInput> inputs = {{"", {8, 8, 2}, {}}};
  Shape positions = {};  // positions of the targets
  std::uint32_t tokens = 0;
  bool two_outputs = false;
  std::string optimizer = "{name: sgd, learning_rate: 0.1, momentum: 0.9}";

  TestJob job() const {
    TestJob job(network, optimizer);
    job.spec.inputs = inputs;
    if (tokens > 0) job.spec.inputs[0].format.dtype = DType::int32;
    job.spec.outputs[0].target.classes = 3;
    job.spec.outputs[0].target.shape = positions;
    if (!two_outputs) return job;
    ProgramSpec::Output values = job.spec.outputs[0];
    job.spec.outputs[0].name = "kind";
    values.name = "trunk";
    values.weight = 0.5;
    values.target = {};
    values.target.shape = {6};
    Reader reader;
    read_choice(loss_choices(), parse_yaml("mean_squared_error", "", ".", reader), reader, values.loss);
    read_choices(metric_choices(), parse_yaml("[mean_absolute_error]", "", ".", reader), reader, values.metrics);
    reader.throw_if_failed();
    job.spec.outputs.push_back(values);
    return job;
  }
};

const std::vector<Task> tasks = {
    {"mlp",
     "layers: [flatten, {dense: {units: 16, activation: relu}}, {dropout: 0.3}, {dense: {units: 12, activation: "
     "tanh}}, "
     "{dense: {units: 3, activation: softmax}}]"},
    {"skips", R"(
layers:
  - conv2d: {name: first, filters: 6, kernel_size: 3, padding: same, activation: relu}
  - residual:
      layers:
        - conv2d: {filters: 6, kernel_size: 3, padding: same, activation: relu}
        - dropout: 0.2
        - conv2d: {filters: 6, kernel_size: 3, padding: same}
      activation: relu
  - max_pooling2d: {name: pooled, pool_size: 2}
  - conv2d: {name: wide, filters: 6, kernel_size: 3, padding: same, activation: gelu}
  - concatenate: {from: [pooled, wide]}
  - global_average_pooling2d
  - dense: {units: 3}
)"},
    {"norms", R"(
layers:
  - conv2d: {filters: 6, kernel_size: 3, padding: same, use_bias: false}
  - batch_normalization: {momentum: 0.9}
  - activation: relu
  - residual:
      layers:
        - conv2d: {filters: 6, kernel_size: 3, padding: same, use_bias: false}
        - batch_normalization: {momentum: 0.9}
      activation: relu
  - max_pooling2d: {pool_size: 2}
  - flatten
  - dense: {units: 3, activation: softmax}
)"},
    {.name = "two inputs and outputs",
     .network = R"(
inputs: [image, table]
outputs: [kind, trunk]
layers:
  - conv2d: {from: image, filters: 4, kernel_size: 3, activation: tanh}
  - flatten: {name: pixels}
  - dense: {name: numbers, from: table, units: 5, activation: tanh}
  - concatenate: {from: [pixels, numbers]}
  - dense: {name: trunk, units: 6, activation: tanh}
  - dense: {name: kind, units: 3, activation: softmax}
)",
     .inputs = {{"image", {6, 6, 2}, {}}, {"table", {4}, {}}},
     .two_outputs = true,
     .optimizer = "{name: adam, learning_rate: 0.01}"},
    {"shared weights", R"(
layers:
  - conv2d: {name: first, filters: 6, kernel_size: 3, padding: same}
  - batch_normalization: {name: norm, momentum: 0.9}
  - conv2d: {name: again, filters: 6, kernel_size: 3, padding: same, activation: relu}
  - batch_normalization: {name: norm, momentum: 0.9}
  - conv2d: {name: again, filters: 6, kernel_size: 3, padding: same, activation: relu}
  - max_pooling2d: {pool_size: 2}
  - dropout: {name: drop, rate: 0.2}
  - conv2d: {name: again, filters: 6, kernel_size: 3, padding: same, activation: relu}
  - global_average_pooling2d
  - dense: {name: mix, units: 6, activation: tanh}
  - dropout: {name: drop, rate: 0.2}
  - dense: {name: mix, units: 6, activation: tanh}
  - dense: {units: 3, activation: softmax}
)"},
    {.name = "sequence",
     .network = "layers: [{embedding: {input_dim: 9, output_dim: 6}}, {dense: {units: 10, activation: tanh}}, "
                "{dense: {units: 8, activation: relu}}, {dense: {units: 3, activation: softmax}}]",
     .inputs = {{"", {7}, {}}},
     .positions = {7},
     .tokens = 9},
    {.name = "shared embedding",
     .network = R"(
layers:
  - embedding: {name: words, input_dim: 9, output_dim: 5}
  - dense: {name: half, units: 5, activation: tanh}
  - layer_normalization: {name: norm}
  - embedding: {name: words, from: input, input_dim: 9, output_dim: 5}
  - dense: {name: half, units: 5, activation: tanh}
  - layer_normalization: {name: norm}
  - concatenate: {from: [norm@1, norm@2]}
  - dense: {units: 3, activation: softmax}
)",
     .inputs = {{"", {7}, {}}},
     .positions = {7},
     .tokens = 9,
     .optimizer = "{name: adam, learning_rate: 0.01}"},
};

// The layer `places` reads the shape of its input alone.
const Task positions{.name = "positions",
                     .network = R"(
layers:
  - embedding: {name: words, input_dim: 9, output_dim: 6}
  - dense: {name: first, units: 6, activation: tanh}
  - position_embedding: {name: places, sequence_length: 7}
  - add: {name: both, from: [first, places]}
  - dense: {name: last, units: 3, activation: softmax}
)",
                     .inputs = {{"", {7}, {}}},
                     .positions = {7},
                     .tokens = 9};

// Random batches, the same on every rank.
class Samples {
 public:
  Samples(const Task& task, std::int64_t count) : task_(task) {
    std::mt19937 random(17);
    std::normal_distribution<float> normal;
    for (const ModelInput& input : task.inputs) {
      std::vector<float>& values = inputs_.emplace_back();
      for (std::int64_t i = 0; i < count * input.sample.count(); ++i) {
        values.push_back(normal(random));
        tokens_.push_back(task.tokens > 0 ? static_cast<std::int32_t>(random() % task.tokens) : 0);
      }
    }
    for (std::int64_t i = 0; i < count * task.positions.count(); ++i)
      kinds_.push_back(static_cast<std::int32_t>(random() % 3));
    for (std::int64_t i = 0; i < count * 6; ++i) values_.push_back(normal(random));
    for (std::int64_t i = 0; i < count; ++i) {
      weights_.push_back(i % 11 == 5 ? 0.0f : 1.0f);
      numbers_.push_back(i);
    }
  }

  Batch share(std::int64_t first, std::int64_t count) {
    const auto part = [&](auto& values, DType dtype, std::int64_t each) {
      return View{values.data(), dtype, std::ssize(values)}.slice(first * each, count * each);
    };
    Batch batch;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const std::int64_t each = task_.inputs[i].sample.count();
      batch.inputs.push_back(task_.tokens > 0 ? part(tokens_, DType::int32, each)
                                              : part(inputs_[i], DType::float32, each));
    }
    batch.targets.push_back(part(kinds_, DType::int32, task_.positions.count()));
    if (task_.two_outputs) batch.targets.push_back(part(values_, DType::float32, 6));
    batch.weights = part(weights_, DType::float32, 1);
    batch.samples = part(numbers_, DType::int64, 1);
    batch.count = count;
    return batch;
  }

 private:
  const Task& task_;
  std::vector<std::vector<float>> inputs_;
  std::vector<float> values_, weights_;
  std::vector<std::int32_t> tokens_, kinds_;
  std::vector<std::int64_t> numbers_;
};

// One epoch of two full batches and the last one.
class Source final : public BatchSource {
 public:
  Source(Samples& samples, const MeshRank& rank) : samples_(samples), rank_(rank) {}
  const Batch& next() override {
    const std::int64_t batch = step_ < 2 ? full : last;
    const Share share = share_of(batch, rank_);
    batch_ = samples_.share(step_ * full + share.first, share.count);
    batch_.global_count = batch;
    batch_.last_of_epoch = ++step_ == 3;
    return batch_;
  }
  DataPosition position() const override { return {}; }
  std::int64_t samples_per_epoch() const override { return 2 * full + last; }
  std::int64_t batch_size() const override { return full; }
  std::int64_t last_batch_size() const override { return last; }
  std::int64_t batch_bytes() const override { return 0; }

 private:
  Samples& samples_;
  MeshRank rank_;
  Batch batch_;
  std::int64_t step_ = 0;
};

struct Outcome {
  std::vector<double> losses, norms;
  std::map<std::string, double> evaluated;
  bool abandoned = false;  // whether the last step, for which one stage had no data, was abandoned
  bool stopped = false;    // whether the evaluation that was stopped ended on this rank without a result
};

// The outcomes of all ranks, and the weights put together from all ranks.
struct Outcomes {
  std::vector<Outcome> ranks;
  WholeTensors weights;
};

struct Setup {
  Mesh mesh;
  int micro_batches = 1;
  PipelineSchedule schedule = PipelineSchedule::one_forward_one_backward;
  bool overlap = false;
  std::string place = "";  // value of strategy.place; empty for balanced stages
  Shard shard = Shard::none;
};

Strategy strategy_of(const TestJob& job, const Setup& setup) {
  Strategy strategy{setup.mesh, {}, setup.overlap};
  strategy.options.schedule = setup.schedule;
  strategy.options.shard = setup.shard;
  if (!setup.place.empty()) {
    Reader reader;
    section_of<StrategyOptions>().read(parse_yaml("place: " + setup.place, "", ".", reader), reader, &strategy.options);
    reader.throw_if_failed();
  }
  return with_stages(job, std::move(strategy));
}

Outcomes train_on(const Task& task, const Setup& setup) {
  Outcomes outcomes;
  outcomes.ranks.resize(static_cast<std::size_t>(setup.mesh.ranks()));
  std::mutex one_at_a_time;
  on_mesh(setup.mesh, [&](Communicator& world) {
    const TestJob job = task.job();
    const BatchSizes sizes{.training = full,
                           .training_last = last,
                           .evaluation = full,
                           .evaluation_last = last,
                           .training_resumed_last = smallest,
                           .gradient_accumulation = setup.micro_batches};
    RankOfMesh rank(job, strategy_of(job, setup), sizes, world);
    Engine& engine = rank.engine;
    const RunPrograms& programs = rank.programs;
    Outcome& outcome = outcomes.ranks[static_cast<std::size_t>(world.rank())];
    Samples samples(task, 3 * full);
    StepResult result;
    for (int step = 0; step < steps; ++step) {
      const std::int64_t batch = step % 5 == 4 ? last : step % 7 == 6 ? smallest : full;
      const Share share = share_of(batch, programs.rank());
      const Batch own = samples.share(step % 3 * full + share.first, share.count);
      engine.run(programs.training(batch), own, {0.1, step, false}, result);
      outcome.losses.push_back(programs.programs().front().results[0].of(result.sums, result.count));
      outcome.norms.push_back(result.gradient_norm);
    }
    ImmediateStream stream;
    Source source(samples, programs.rank());
    if (setup.mesh.pipeline > 1) {  // a step for which the first stage has no data changes nothing
      const bool here = world.rank() == 0;
      const Share share = share_of(full, programs.rank());
      const Batch own = samples.share(share.first, share.count);
      engine.run(programs.training(full), own, {0.1, steps, here, 1.0, here}, result);
      outcome.abandoned = result.abandoned;
    }
    outcome.evaluated = evaluate(engine, programs, source, world, stream)->values;
    // The ranks learn one after the other that they shall stop; no rank waits for the tensors of one that has stopped.
    Source stopped(samples, programs.rank());
    int asked = 0;
    outcome.stopped =
        !evaluate(engine, programs, stopped, world, stream, [&] { return ++asked > 1 + world.rank(); }).has_value();
    engine.download();
    const std::lock_guard lock(one_at_a_time);
    put_together(engine.weights(), outcomes.weights);
  });
  return outcomes;
}

// All ranks report what one rank reports, and the weights of all stages together are its weights.
void compare(const Outcomes& on_one, const Outcomes& on_many) {
  const Outcome& one = on_one.ranks[0];
  for (const Outcome& rank : on_many.ranks) {
    CHECK(rank.abandoned);
    CHECK(rank.stopped);
    REQUIRE(rank.losses.size() == one.losses.size());
    for (std::size_t step = 0; step < one.losses.size(); ++step) {
      CAPTURE(step);
      CHECK(rank.losses[step] == Approx(one.losses[step]).epsilon(1e-4));
      CHECK(rank.norms[step] == Approx(one.norms[step]).epsilon(1e-3));
    }
    for (const auto& [name, value] : one.evaluated) CHECK(rank.evaluated.at(name) == Approx(value).epsilon(1e-4));
  }
  CHECK(one.losses.front() != one.losses.back());
  REQUIRE(on_many.weights.size() == on_one.weights.size());
  for (const auto& [name, values] : on_one.weights) {
    CAPTURE(name);
    CHECK(largest_difference(on_many.weights.at(name), values) < 5e-4);
  }
}

// Trains on one rank with the same number of micro-batches, of the same samples.
Outcomes on_one_rank(const Task& task, const Setup& setup) {
  return train_on(task, {.mesh = {}, .micro_batches = setup.mesh.data * setup.micro_batches});
}

}  // namespace

TEST_CASE("stages learn what one rank learns on the same micro-batches") {
  const Setup setups[] = {
      {.mesh = {.pipeline = 2}, .micro_batches = 4},
      {.mesh = {.pipeline = 2}, .micro_batches = 4, .schedule = PipelineSchedule::gpipe},
      {.mesh = {.pipeline = 4}, .micro_batches = 6},
      {.mesh = {.pipeline = 4}, .micro_batches = 2, .schedule = PipelineSchedule::gpipe},
      {.mesh = {.pipeline = 3}, .micro_batches = 1},
      {.mesh = {.data = 2, .pipeline = 2}, .micro_batches = 3},
      {.mesh = {.data = 2, .pipeline = 2}, .micro_batches = 2, .overlap = true},
      {.mesh = {.pipeline = 4}, .micro_batches = 8, .overlap = true},
      {.mesh = {.pipeline = 2}, .micro_batches = 8},
      {.mesh = {.pipeline = 3}, .micro_batches = 8, .schedule = PipelineSchedule::gpipe, .overlap = true},
  };
  for (const Task& task : tasks) {
    for (const Setup& setup : setups) {
      CAPTURE(task.name, setup.mesh.data, setup.mesh.pipeline, setup.micro_batches, setup.overlap);
      compare(on_one_rank(task, setup), train_on(task, setup));
    }
  }
}

TEST_CASE("replicas of stages that shard optimizer, gradients or parameters learn the same") {
  for (const Task& task : tasks) {
    for (const Shard shard : {Shard::optimizer, Shard::gradients, Shard::parameters}) {
      const Setup setup{.mesh = {.data = 2, .pipeline = 2}, .micro_batches = 3, .shard = shard};
      CAPTURE(task.name, static_cast<int>(shard));
      compare(on_one_rank(task, setup), train_on(task, setup));
    }
  }
}

TEST_CASE("a stage after one without trainable layers sends it no gradients, and learns the same") {
  const Setup setup{.mesh = {.pipeline = 3},
                    .micro_batches = 4,
                    .place = "{0: [flatten], 1: [dense, dropout], 2: [dense_1, dense_2]}"};
  compare(on_one_rank(tasks[0], setup), train_on(tasks[0], setup));
}

TEST_CASE("a stage that passes no gradient back to a trained stage learns the same") {
  for (const int micro_batches : {2, 4}) {
    const Setup setup{.mesh = {.pipeline = 3},
                      .micro_batches = micro_batches,
                      .place = "{0: [words, first], 1: [places], 2: [both, last]}"};
    CAPTURE(micro_batches);
    compare(on_one_rank(positions, setup), train_on(positions, setup));
  }
}

TEST_CASE("a slot holds one micro-batch at a time, and there is one slot for each micro-batch in flight") {
  for (const Task& task : tasks) {
    const TestJob job = task.job();
    const bool mlp = task.name == "mlp";
    for (const PipelineSchedule schedule : {PipelineSchedule::one_forward_one_backward, PipelineSchedule::gpipe}) {
      for (const int micro_batches : {1, 2, 4, 8}) {
        const Setup setup{.mesh = {.pipeline = 3},
                          .schedule = schedule,
                          .place = mlp ? "{0: [flatten], 1: [dense, dropout], 2: [dense_1, dense_2]}" : ""};
        for (int stage = 0; stage < 3; ++stage) {
          CAPTURE(task.name, static_cast<int>(schedule), micro_batches, stage);
          Reader reader;
          const Program program = training_program(job.spec, {full / micro_batches, micro_batches}, reader,
                                                   parallelism(strategy_of(job, setup), stage));
          reader.throw_if_failed();
          const bool gpipe = schedule == PipelineSchedule::gpipe;
          CHECK(program.slots == std::min(micro_batches, gpipe ? micro_batches : 3 - stage));
          std::vector<int> holds(static_cast<std::size_t>(program.slots), 0);
          for (const ScheduleItem& item : program.schedule) {
            if (program.segment(item.segment).phase == Phase::update) continue;
            int& held = holds.at(static_cast<std::size_t>(item.slot));
            CHECK(item.micro_batch >= held);  // no earlier micro-batch follows a later one
            held = item.micro_batch;
          }
        }
      }
    }
  }
}

}  // namespace trainctl::pipeline_test
