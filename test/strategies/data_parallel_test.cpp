// Data parallelism: buckets cover every gradient exactly once, and every element is reduced after it is final and
// before it is used.
#include "parallel/strategies/data.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "core/graph/ops/collectives.h"
#include "core/graph/ops/dense.h"
#include "core/graph/ops/update.h"
#include "test/catch.h"

using namespace trainctl;

namespace {

// A program whose backward pass finishes layer after layer, kernels of random sizes with their biases.
Program random_program(std::mt19937& random, int layers, int micro_batches, bool has_samples = true) {
  Program program;
  const auto add = [&](std::string name, std::int64_t count, Role role) {
    Tensor tensor;
    tensor.name = std::move(name);
    tensor.type = {{count}, DType::float32};
    tensor.role = role;
    program.tensors.push_back(std::move(tensor));
    return static_cast<TensorId>(program.tensors.size() - 1);
  };
  FlatLayout& flat = program.flat;
  const auto parameter = [&](std::string name, std::int64_t count, bool trains) {
    const TensorId weight = add(name, count, Role::parameter);
    const TensorId gradient = trains ? add(name + "/gradient", count, Role::gradient) : no_tensor;
    flat.parameters.push_back({weight, gradient, flat.parameter_count, count, true});
    flat.parameter_count += count;
    return gradient;
  };
  const TensorId activation = add("x", 8, Role::activation);
  Segment first{Phase::backward, Variant::first, {}}, later{Phase::backward, Variant::accumulate, {}};
  for (int i = 0; i < layers; ++i) {
    const std::string name = "layer" + std::to_string(i);
    const TensorId kernel = parameter(name + "/kernel", 1 + static_cast<std::int64_t>(random() % 3000), true);
    const TensorId bias = parameter(name + "/bias", 1 + static_cast<std::int64_t>(random() % 40), true);
    for (Segment* segment : {&first, &later}) {
      const bool accumulate = segment == &later;
      segment->ops.push_back(
          {std::make_shared<DenseGradWeights>(true, accumulate), {activation, activation}, {kernel, bias}, name, {}});
      segment->ops.push_back({std::make_shared<DenseGradInput>(), {activation}, {activation}, name, {}});
    }
  }
  flat.trainable_count = flat.parameter_count;
  parameter("frozen", 50, false);
  StepTensors& step = program.step;
  step.loss = add("loss", 1, Role::reduced);
  step.agree = add("agree", agree_flags, Role::reduced);
  flat.reduced = {{step.loss, flat.trainable_count}, {step.agree, flat.trainable_count + 1}};
  flat.gradient_count = flat.trainable_count + 1 + agree_flags;
  step.gradients = add("gradients", flat.gradient_count, Role::gradient);
  Segment update{Phase::update, {}, {}};
  update.ops.push_back({std::make_shared<Agree>(), {step.loss}, {step.agree}, "agree", {}});
  update.ops.push_back(
      {std::make_shared<GradientNorm>(flat.trainable_count), {step.gradients}, {step.loss}, "norm", {}});

  program.micro_batches = micro_batches;
  if (!has_samples) {
    auto zero = std::make_shared<ZeroGradients>(flat.gradient_count);
    first.ops = {{zero, {}, {step.gradients}, "no samples", {}}};
  }
  program.segments = {first, later, update};
  for (int i = 0; i < micro_batches; ++i) program.schedule.push_back({i == 0 ? 0 : 1, i, 0});
  program.schedule.push_back({2, 0, 0});
  return program;
}

std::vector<const Op*> executed(const Program& program) {
  std::vector<const Op*> ops;
  for (const ScheduleItem& item : program.schedule) {
    for (const Op& op : program.segments[static_cast<std::size_t>(item.segment)].ops) ops.push_back(&op);
  }
  return ops;
}

// Plays the ops in order, element by element: who is written, reduced, waited for and read when.
void check_reduction(const Program& program) {
  const auto count = static_cast<std::size_t>(program.flat.gradient_count);
  std::vector<int> reductions(count, 0), waited(count, 0);
  std::map<TensorId, std::pair<std::int64_t, std::int64_t>> range{
      {program.step.gradients, {0, program.flat.gradient_count}}};
  for (const FlatEntry& entry : program.flat.parameters) range[entry.gradient] = {entry.offset, entry.count};
  for (const FlatPlace& place : program.flat.reduced) {
    range[place.tensor] = {place.offset, program.tensor(place.tensor).type.shape.count()};
  }
  std::map<int, Bucket> pending;
  int next_bucket = 0;
  for (const Op* op : executed(program)) {
    if (op->def->kind() == "all_reduce") {
      const auto& reduce = op->as<AllReduce>();
      CHECK(reduce.bucket == next_bucket++);
      pending[reduce.bucket] = {reduce.offset, reduce.count};
      for (std::int64_t i = reduce.offset; i < reduce.offset + reduce.count; ++i)
        ++reductions.at(static_cast<std::size_t>(i));
    } else if (op->def->kind() == "wait") {
      const Bucket bucket = pending.at(op->as<WaitBucket>().bucket);
      for (std::int64_t i = bucket.offset; i < bucket.offset + bucket.count; ++i)
        waited.at(static_cast<std::size_t>(i)) = 1;
    } else if (op->def->kind() == "gradient_norm") {
      CHECK(std::all_of(reductions.begin(), reductions.end(), [](int n) { return n == 1; }));
      CHECK(std::all_of(waited.begin(), waited.end(), [](int n) { return n == 1; }));
    } else {
      for (TensorId output : op->outputs) {
        const auto written = range.find(output);
        if (written == range.end()) continue;
        const auto begin = reductions.begin() + written->second.first;  // nothing changes once reduced
        CHECK(std::all_of(begin, begin + written->second.second, [](int n) { return n == 0; }));
      }
    }
  }
}

int count(const Program& program, std::string_view kind) {
  int found = 0;
  for (const Op* op : executed(program)) found += op->def->kind() == kind;
  return found;
}

StrategyOptions small_buckets() {
  StrategyOptions options;
  options.first_bucket_size.bytes = 2000;
  options.bucket_size.bytes = 20000;
  return options;
}

}  // namespace

TEST_CASE("buckets cover the gradient region once, cut between parameters") {
  std::mt19937 random(1);
  for (int round = 0; round < 30; ++round) {
    const Program program = random_program(random, 1 + static_cast<int>(random() % 20), 1);
    std::set<std::int64_t> cuts;
    for (const FlatEntry& entry : program.flat.parameters) cuts.insert(entry.offset);
    std::int64_t next = 0;
    const auto buckets = gradient_buckets(program.flat, 2000, 20000);
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      CHECK(buckets[b].offset == next);
      CHECK(cuts.contains(next));
      next += buckets[b].count;
      if (b + 1 < buckets.size()) CHECK(buckets[b].count * 4 >= (b == 0 ? 2000 : 20000));
      CHECK(buckets[b].count * 4 < (b == 0 ? 2000 : 20000) + 3040 * 4);
    }
    CHECK(next == program.flat.gradient_count);
  }
}

TEST_CASE("every gradient is reduced once, after it is final and before the update") {
  std::mt19937 random(2);
  for (int round = 0; round < 30; ++round) {
    for (const bool overlap : {false, true}) {
      const Program program = random_program(random, 1 + static_cast<int>(random() % 12), 1 + round % 3);
      check_reduction(apply_data_parallel(program, {2, 1, 1}, small_buckets(), overlap));
    }
  }
}

TEST_CASE("overlap starts the reduction inside the last backward pass only") {
  std::mt19937 random(3);
  for (const int micro_batches : {1, 2, 3}) {
    const Program program =
        apply_data_parallel(random_program(random, 20, micro_batches), {4, 1, 1}, small_buckets(), true);
    const int buckets = static_cast<int>(gradient_buckets(program.flat, 2000, 20000).size());
    REQUIRE(buckets >= 3);
    CHECK(count(program, "all_reduce") == buckets);
    const ScheduleItem& last = program.schedule[static_cast<std::size_t>(micro_batches) - 1];
    const Segment& segment = program.segments[static_cast<std::size_t>(last.segment)];
    CHECK(name_of(segment) == (micro_batches == 1   ? "backward"
                               : micro_batches == 2 ? "backward_accumulate"
                                                    : "backward_last"));
    int inside = 0;
    for (const Op& op : segment.ops) inside += op.def->kind() == "all_reduce";
    CHECK(inside == buckets - 1);
    CHECK(segment.ops.back().def->kind() != "all_reduce");  // computation is left behind the last of them
  }
}

TEST_CASE("a rank without samples makes the same reductions") {
  for (const bool overlap : {false, true}) {
    std::mt19937 random(4), again(4);
    const auto full = apply_data_parallel(random_program(random, 9, 3), {3, 1, 1}, small_buckets(), overlap);
    const auto none = apply_data_parallel(random_program(again, 9, 1, false), {3, 1, 1}, small_buckets(), overlap);
    check_reduction(none);
    const auto reductions = [](const Program& program) {
      std::vector<std::string> attributes;
      for (const Op* op : executed(program)) {
        if (op->def->kind() == "all_reduce") attributes.push_back(op->def->attributes());
      }
      return attributes;
    };
    CHECK(reductions(full) == reductions(none));
  }
}

TEST_CASE("one replica, and an evaluation, get no collectives") {
  std::mt19937 random(5);
  Program program = random_program(random, 3, 1);
  CHECK(count(apply_data_parallel(program, {1, 1, 1}, small_buckets(), true), "all_reduce") == 0);
  program.segments.pop_back();
  program.schedule.pop_back();
  CHECK(count(apply_data_parallel(program, {2, 1, 1}, small_buckets(), true), "all_reduce") == 0);
}

TEST_CASE("placements say what each replica holds") {
  std::mt19937 random(6);
  const Program program = apply_data_parallel(random_program(random, 2, 1), {2, 1, 1}, {}, true);
  for (const Tensor& tensor : program.tensors) {
    REQUIRE(tensor.placements.size() == 3);
    const Placement::Kind kind = tensor.placements[0].kind;
    if (tensor.role == Role::activation) CHECK(kind == Placement::Kind::split);
    if (tensor.role == Role::gradient || tensor.role == Role::reduced) CHECK(kind == Placement::Kind::partial);
    if (tensor.role == Role::parameter) CHECK(kind == Placement::Kind::replicated);
  }
}

TEST_CASE("the mesh numbers ranks with tensor innermost") {
  const Mesh mesh{3, 2, 4};
  CHECK(mesh.ranks() == 24);
  std::set<int> seen;
  for (int data = 0; data < 3; ++data) {
    for (int pipeline = 0; pipeline < 2; ++pipeline) {
      for (int tensor = 0; tensor < 4; ++tensor) {
        const int rank = mesh.rank({data, pipeline, tensor});
        CHECK(seen.insert(rank).second);
        CHECK(mesh.position(rank) == Mesh::Position{data, pipeline, tensor});
      }
    }
  }
  CHECK(mesh.rank({0, 0, 1}) == 1);
  CHECK(mesh.rank({0, 1, 0}) == 4);
}

TEST_CASE("strategy.data must be the number of ranks") {
  StrategyOptions options;
  CHECK(mesh_of(options, 3) == Mesh{3, 1, 1});
  options.data.stated = 2;
  CHECK(mesh_of(options, 2) == Mesh{2, 1, 1});
  CHECK_THROWS_AS(mesh_of(options, 3), Error);
}
