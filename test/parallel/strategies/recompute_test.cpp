// Tests that recomputing activations changes the memory of a step, but no bit of its results.
#include "parallel/strategies/op_cost.h"
#include "parallel/strategies/table.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <random>

#include "core/base/format.h"
#include "core/graph/ops/normalization/batch_norm.h"
#include "parallel/strategies/recompute/blocks.h"
#include "parallel/trainer/recompute_choice.h"
#include "test/catch.h"
#include "test/parallel/strategies/rank_of_mesh.h"

namespace trainctl::recompute_test {
namespace {

constexpr std::int64_t batch = 96;
constexpr int steps = 4;

struct Task {
  std::string name;
  std::string network;
  Shape sample = {8, 8, 2};
  std::uint32_t tokens = 0;
  Shape positions = {};  // positions of the targets
};

const std::vector<Task> tasks = {
    {"skips", R"(
layers:
  - conv2d: {name: first, filters: 16, kernel_size: 3, padding: same, activation: relu}
  - repeat:
      times: 3
      layers:
        - residual:
            layers:
              - conv2d: {filters: 16, kernel_size: 3, padding: same, activation: gelu}
              - dropout: 0.2
              - conv2d: {filters: 16, kernel_size: 3, padding: same}
            activation: relu
        - dropout: 0.1
  - max_pooling2d: {name: pooled, pool_size: 2}
  - conv2d: {name: wide, filters: 6, kernel_size: 3, padding: same, activation: gelu}
  - concatenate: {from: [pooled, wide]}
  - global_average_pooling2d
  - dense: {units: 3}
)"},
    {"norms", R"(
layers:
  - conv2d: {filters: 12, kernel_size: 3, padding: same, use_bias: false}
  - batch_normalization
  - activation: relu
  - repeat:
      times: 2
      layers:
        - residual:
            layers:
              - conv2d: {filters: 12, kernel_size: 3, padding: same, use_bias: false}
              - batch_normalization
              - activation: relu
              - conv2d: {filters: 12, kernel_size: 3, padding: same, use_bias: false}
              - batch_normalization
            activation: relu
  - residual:
      layers:
        - conv2d: {filters: 20, kernel_size: 3, strides: 2, padding: same, use_bias: false}
        - batch_normalization
      shortcut:
        - conv2d: {filters: 20, kernel_size: 1, strides: 2, use_bias: false}
        - batch_normalization
      activation: relu
  - batch_normalization
  - activation: relu
  - max_pooling2d: {pool_size: 2}
  - flatten
  - dense: {units: 3, activation: softmax}
)"},
    {"plain", R"(
layers:
  - flatten
  - repeat: {times: 9, layers: [{dense: {units: 48, activation: gelu}}]}
  - dense: {name: a, units: 64, activation: relu}
  - dropout: 0.3
  - dense: {name: b, units: 64, activation: gelu}
  - dense: {name: c, units: 64, activation: gelu}
  - layer_normalization
  - dense: {name: d, units: 64, activation: gelu}
  - dense: {name: e, units: 64, activation: gelu}
  - dense: {name: f, units: 64, activation: gelu}
  - dense: {name: g, units: 3, activation: softmax}
)"},
    {.name = "sequence",
     .network = "layers: [{embedding: {input_dim: 9, output_dim: 16}}, {repeat: {times: 4, layers: [{residual: "
                "{layers: [layer_normalization, {dense: {units: 32, activation: gelu}}, {dropout: 0.1}, {dense: "
                "{units: 16}}]}}]}}, {dense: {units: 3, activation: softmax}}]",
     .sample = {7},
     .tokens = 9,
     .positions = {7}},
};

TestJob job_of(const Task& task) {
  TestJob job(task.network, "{name: sgd, learning_rate: 0.1, momentum: 0.9}");
  job.spec.inputs[0].sample = task.sample;
  if (task.tokens > 0) job.spec.inputs[0].format.dtype = DType::int32;
  job.spec.outputs[0].target.classes = 3;
  job.spec.outputs[0].target.shape = task.positions;
  job.spec.seed = 3;
  return job;
}

// Random samples of a task, the same on every rank.
class Samples {
 public:
  explicit Samples(const Task& task) : task_(task) {
    std::mt19937 random(17);
    std::normal_distribution<float> normal;
    for (std::int64_t i = 0; i < batch * task.sample.count(); ++i) {
      values_.push_back(normal(random));
      tokens_.push_back(task.tokens > 0 ? static_cast<std::int32_t>(random() % task.tokens) : 0);
    }
    for (std::int64_t i = 0; i < batch * task.positions.count(); ++i)
      targets_.push_back(static_cast<std::int32_t>(random() % 3));
    for (std::int64_t i = 0; i < batch; ++i) {
      weights_.push_back(i == 5 ? 0.0f : 1.0f);
      numbers_.push_back(i);
    }
  }
  Batch share(const MeshRank& rank) {
    const Share share = share_of(batch, rank);
    const auto part = [&](auto& values, DType dtype, std::int64_t each) {
      return View{values.data(), dtype, std::ssize(values)}.slice(share.first * each, share.count * each);
    };
    Batch own;
    const std::int64_t each = task_.sample.count();
    own.inputs = {task_.tokens > 0 ? part(tokens_, DType::int32, each) : part(values_, DType::float32, each)};
    own.targets = {part(targets_, DType::int32, task_.positions.count())};
    own.weights = part(weights_, DType::float32, 1);
    own.samples = part(numbers_, DType::int64, 1);
    own.count = share.count;
    return own;
  }

 private:
  const Task& task_;
  std::vector<float> values_, weights_;
  std::vector<std::int32_t> tokens_, targets_;
  std::vector<std::int64_t> numbers_;
};

struct Setup {
  Mesh mesh;
  int micro_batches = 1;
  Shard shard = Shard::none;
  bool overlap = false;
  PipelineSchedule schedule = PipelineSchedule::one_forward_one_backward;
};

Strategy strategy_of(const TestJob& job, const Setup& setup, Recompute recompute, std::set<std::string> blocks = {}) {
  Strategy strategy{setup.mesh, {}, setup.overlap};
  strategy.options.tensor.value = setup.mesh.tensor;
  strategy.options.schedule = setup.schedule;
  strategy.options.shard = setup.shard;
  strategy.options.recompute = recompute;
  strategy.options.bucket_size.bytes = strategy.options.first_bucket_size.bytes = 4000;
  strategy.recomputed = std::move(blocks);
  return with_stages(job, std::move(strategy));
}

// The training program of a full batch.
Program program_of(const TestJob& job, const Strategy& strategy, int micro_batches = 1, int rank = 0) {
  const BatchSizes sizes{.training = batch, .gradient_accumulation = micro_batches};
  return programs_on(job, strategy, sizes, rank).programs().front();
}

std::set<std::string> names_of(const std::vector<RecomputableBlock>& blocks) {
  std::set<std::string> names;
  for (const RecomputableBlock& block : blocks) names.insert(block.name);
  return names;
}

// The tensors of all ranks after some steps, by rank and name, the losses, and the memory of the arenas.
struct Outcome {
  std::map<std::string, std::vector<float>> values;
  std::vector<double> losses;
  std::int64_t arena = 0;  // bytes of all ranks
};

Outcome train(const Task& task, const Setup& setup, Recompute recompute, const std::set<std::string>& blocks = {}) {
  Outcome outcome;
  std::mutex one_at_a_time;
  on_mesh(setup.mesh, [&](Communicator& world) {
    const TestJob job = job_of(task);
    const BatchSizes sizes{.training = batch, .gradient_accumulation = setup.micro_batches};
    RankOfMesh rank(job, strategy_of(job, setup, recompute, blocks), sizes, world);
    Engine& engine = rank.engine;
    Samples samples(task);
    StepResult result;
    std::vector<double> losses;
    for (int step = 0; step < steps; ++step) {
      engine.run(rank.programs.training(batch), samples.share(rank.programs.rank()), {0.1, step, false}, result);
      losses.push_back(result.sums[0] / result.count);
    }
    engine.download();
    const std::lock_guard lock(one_at_a_time);
    outcome.losses = losses;
    outcome.arena += engine.memory().of(Region::slot);
    for (const auto& tensors : {engine.weights(), engine.state()}) {
      for (const NamedTensor& tensor : tensors) {
        const float* first = tensor.view.as<float>();
        outcome.values[format("{} {}", world.rank(), tensor.name)] = {first, first + tensor.view.count};
      }
    }
  });
  return outcome;
}

void check_same(const Outcome& outcome, const Outcome& kept) {
  CHECK(outcome.losses == kept.losses);
  CHECK(outcome.values == kept.values);
}

}  // namespace

TEST_CASE("recomputation changes no bit of the results, and takes less memory") {
  const Setup setups[] = {
      {.mesh = {}},
      {.mesh = {}, .micro_batches = 3},
      {.mesh = {.data = 2}, .micro_batches = 2, .overlap = true},
      {.mesh = {.data = 3}, .shard = Shard::optimizer},
      {.mesh = {.data = 2}, .micro_batches = 2, .shard = Shard::gradients},
      {.mesh = {.data = 2}, .micro_batches = 2, .shard = Shard::parameters, .overlap = true},
      {.mesh = {.data = 2}, .shard = Shard::parameters},
      {.mesh = {.pipeline = 2}, .micro_batches = 4},
      {.mesh = {.pipeline = 2}, .micro_batches = 4, .schedule = PipelineSchedule::gpipe},
      {.mesh = {.data = 2, .pipeline = 2}, .micro_batches = 3, .shard = Shard::parameters},
  };
  for (const Task& task : tasks) {
    for (const Setup& setup : setups) {
      CAPTURE(task.name, setup.mesh.data, setup.mesh.pipeline, setup.micro_batches, name_of(setup.shard));
      const Outcome kept = train(task, setup, Recompute::none), again = train(task, setup, Recompute::blocks);
      CHECK(kept.losses.front() != kept.losses.back());
      check_same(again, kept);
      // With layers this small, workspaces and gathered parameters take more memory than the activations of a share of
      // a batch.
      if (setup.mesh.data == 1 || task.name != "plain") CHECK(again.arena < kept.arena);
    }
  }
}

TEST_CASE("ranks that split layers recompute them without communicating again") {
  const Setup setup{.mesh = {.tensor = 2}};
  for (const Task& task : tasks) {
    CAPTURE(task.name);
    if (task.name == "norms" || task.name == "skips") continue;  // layers too small to be split
    const Outcome kept = train(task, setup, Recompute::none), again = train(task, setup, Recompute::blocks);
    check_same(again, kept);
    CHECK(again.arena < kept.arena);
    const TestJob job = job_of(task);
    const auto collectives = [&](Recompute recompute) {
      std::vector<std::string> found;
      for (const Segment& segment : program_of(job, strategy_of(job, setup, recompute)).segments) {
        for (const Op& op : segment.ops) {
          if (op.def->trait() == OpTrait::collective) found.push_back(std::string(op.def->kind()) + " " + op.name);
        }
      }
      return found;
    };
    CHECK(collectives(Recompute::blocks) == collectives(Recompute::none));
  }
}

TEST_CASE("any set of blocks can be recomputed") {
  std::mt19937 random(4);
  for (const Task& task : tasks) {
    const Setup setup{.mesh = {}, .micro_batches = 2};
    const TestJob job = job_of(task);
    const auto all = recomputable_blocks(program_of(job, strategy_of(job, setup, Recompute::none), 2));
    REQUIRE(all.size() >= 3);
    REQUIRE(names_of(all).size() == all.size());
    const Outcome kept = train(task, setup, Recompute::none);
    for (int draw = 0; draw < 6; ++draw) {
      std::set<std::string> some;
      for (const RecomputableBlock& block : all) {
        if (draw == 0 || random() % 2 == 0) some.insert(block.name);
      }
      CAPTURE(task.name, some);
      check_same(train(task, setup, Recompute::automatic, some), kept);
    }
  }
}

TEST_CASE("blocks are the residual blocks, bodies of repeat, and segments of the layers between them") {
  const auto blocks = [](std::size_t task) {
    const TestJob job = job_of(tasks[task]);
    std::vector<std::string> names;
    for (const RecomputableBlock& block :
         recomputable_blocks(program_of(job, strategy_of(job, {.mesh = {}}, Recompute::none)))) {
      names.push_back(block.name);
    }
    return names;
  };
  const std::vector<std::string> norms = blocks(1);
  CHECK(std::ranges::find(norms, "repeat/0/residual") != norms.end());
  CHECK(std::ranges::find(norms, "repeat/1/residual") != norms.end());
  CHECK(std::ranges::find(norms, "residual") != norms.end());
  // Sixteen equal layers are cut into about four segments.
  Task equal{"equal", "layers:\n  - flatten\n"};
  for (int i = 0; i < 16; ++i) equal.network += "  - dense: {units: 64, activation: gelu}\n";
  const TestJob job = job_of({equal.name, equal.network + "  - dense: {units: 3}\n"});
  const auto segments = recomputable_blocks(program_of(job, strategy_of(job, {.mesh = {}}, Recompute::none)));
  CHECK(segments.size() >= 3);
  CHECK(segments.size() <= 6);
}

TEST_CASE("only activations that the backward pass needs are recomputed, and statistics are accumulated once") {
  const TestJob job = job_of(tasks[1]);
  const Program kept = program_of(job, strategy_of(job, {.mesh = {}}, Recompute::none));
  const Program again = program_of(job, strategy_of(job, {.mesh = {}}, Recompute::blocks));
  const auto ops = [](const Program& program, std::string_view kind, Phase phase) {
    std::vector<Op> found;
    for (const Op& op : program.segment(program.find(phase)).ops) {
      if (op.def->kind() == kind) found.push_back(op);
    }
    return found;
  };
  REQUIRE(ops(again, "accumulate_statistics", Phase::backward).size() == 1);
  CHECK(ops(again, "accumulate_statistics", Phase::backward)[0].inputs ==
        ops(kept, "accumulate_statistics", Phase::backward)[0].inputs);
  // The normalisation that ends a residual block writes the block's output, which is kept.
  for (const Op& op : ops(again, "batch_norm", Phase::backward)) CHECK_FALSE(op.as<BatchNorm>().a.residual);
  CHECK_FALSE(ops(again, "batch_norm", Phase::backward).empty());
  CHECK(ops(again, "batch_norm", Phase::forward).size() == ops(kept, "batch_norm", Phase::forward).size());
  // Every recomputed op has an output that a later op reads.
  const std::vector<Op>& backward = again.segment(again.find(Phase::backward)).ops;
  for (std::size_t i = 0; i < backward.size(); ++i) {
    const auto is_again = [&](TensorId id) { return again.tensor(id).name.ends_with("/again"); };
    if (std::ranges::none_of(backward[i].outputs, is_again)) continue;
    bool read = false;
    for (std::size_t later = i + 1; later < backward.size(); ++later) {
      for (TensorId id : backward[i].outputs) {
        read = read || std::ranges::find(backward[later].inputs, id) != backward[later].inputs.end();
      }
    }
    CAPTURE(backward[i].name, backward[i].def->kind());
    CHECK(read);
  }
}

TEST_CASE("auto recomputes no more blocks than the memory limit requires") {
  for (const Task& task : tasks) {
    for (const Mesh& mesh : {Mesh{}, Mesh{.data = 2, .pipeline = 2}}) {
      const TestJob job = job_of(task);
      const Strategy strategy = strategy_of(job, {.mesh = mesh}, Recompute::automatic);
      const BatchSizes sizes{.training = batch, .gradient_accumulation = 2};
      const auto backend = make_cpu_backend({});
      const auto memory_of = [&](const std::vector<Program>& programs) {
        KernelChoices choices;
        choices.stop_timing();
        return compile(programs, *backend, choices).memory.total();
      };
      // The memory of the rank that needs most if these blocks are recomputed.
      const auto largest_memory = [&](const std::set<std::string>& blocks) {
        Strategy recomputing = strategy;
        recomputing.recomputed = blocks;
        std::int64_t bytes = 0;
        for (int rank = 0; rank < mesh.ranks(); ++rank) {
          Reader reader;
          bytes = std::max(bytes, memory_of(RunPrograms(job.spec, recomputing, sizes, rank, reader).programs()));
        }
        return bytes;
      };
      const auto choose = [&](std::int64_t limit) {
        return choose_recomputed(job.spec, strategy, sizes, limit, byte_costs_of_processor, memory_of);
      };
      CAPTURE(task.name, mesh.data, mesh.pipeline);
      const std::int64_t whole = largest_memory({});
      CHECK(choose(0).empty());
      CHECK(choose(whole).empty());
      const std::set<std::string> all = choose(1), one = choose(whole - 1);
      CHECK(largest_memory(all) < whole);
      CHECK(one.size() < all.size());
      CHECK_FALSE(one.empty());
      for (int part = 0; part <= 4; ++part) {  // from the least memory to the most
        const std::int64_t limit = largest_memory(all) + (whole - largest_memory(all)) * part / 4;
        const std::set<std::string> chosen = choose(limit);
        CHECK(largest_memory(chosen) <= limit);
        for (const std::string& name : chosen) {
          std::set<std::string> fewer = chosen;
          fewer.erase(name);
          CAPTURE(part, name);
          if (mesh.ranks() == 1) CHECK(largest_memory(fewer) > limit);  // every chosen block is needed
        }
      }
    }
  }
}

}  // namespace trainctl::recompute_test
