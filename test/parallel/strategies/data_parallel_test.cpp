// Tests data parallelism: buckets cover every gradient exactly once, and every element is reduced after it is final and
// before it is used.
#include "core/optim/choices.h"
#include "parallel/strategies/table.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "core/graph/ops/collectives.h"
#include "core/graph/ops/dense.h"
#include "core/graph/ops/training/update.h"
#include "core/optim/optimizer.h"
#include "core/program/finish.h"
#include "io/yaml/yaml.h"
#include "parallel/strategies/buckets.h"
#include "test/catch.h"

namespace trainctl::data_parallel_test {
namespace {

// A program before its strategies are applied. Its backward pass computes the gradients of one layer after the other,
// of kernels of random sizes and of biases.
Program random_program(std::mt19937& random, int layers, int micro_batches, bool has_samples = true) {
  Program program;
  const auto add = [&](std::string name, std::int64_t count, Role role) {
    return program.add(std::move(name), {count}, DType::float32, role);
  };
  const auto parameter = [&](std::string name, std::int64_t count, bool trains) {
    const TensorId weight = add(name, count, Role::parameter);
    const TensorId gradient = trains ? add(name + "/gradient", count, Role::gradient) : no_tensor;
    program.flat.parameters.push_back({weight, gradient, 0, count, true});
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
  program.flat.buckets = {{.entries = 2 * layers}};
  parameter("frozen", 50, false);
  program.flat.states = {"momentum"};
  StepTensors& step = program.step;
  step.losses = {add("loss", 1, Role::reduced)};
  step.count = add("count", 1, Role::reduced);
  step.gradient_norm = add("gradient_norm", 1, Role::scalar);
  program.flat.reduced = {{step.losses[0], 0}, {step.count, 0}};

  program.micro_batches = micro_batches;
  program.micro_batch_samples = has_samples ? 1 : 0;
  if (!has_samples) first.ops.clear();
  program.segments = {first, later, {Phase::update, {}, {}}};
  for (int i = 0; i < micro_batches; ++i) program.schedule.push_back({i == 0 ? 0 : 1, i, 0});
  program.schedule.push_back({2, 0, 0});
  return program;
}

Strategy replicas(int count, bool overlap) {
  Strategy strategy{{.data = count}, {}, overlap};
  strategy.options.first_bucket_size.bytes = 2000;
  strategy.options.bucket_size.bytes = 20000;
  return strategy;
}

// The finished program of the last replica.
Program finished(Program program, const Strategy& strategy) {
  const MeshRank rank = replica(strategy.mesh.data - 1, strategy.mesh.data);
  Reader reader;
  Choice optimizer;
  read_choice(optimizer_choices(), parse_yaml("sgd", "", ".", reader), reader, optimizer);
  reader.throw_if_failed();
  return finish_training(reduce_gradients(std::move(program), rank, strategy),
                         {optimizer.as<OptimizerOptions>(), {}, 0, {}}, rank);
}

std::vector<const Op*> executed(const Program& program) {
  std::vector<const Op*> ops;
  for (const ScheduleItem& item : program.schedule) {
    for (const Op& op : program.segments[static_cast<std::size_t>(item.segment)].ops) ops.push_back(&op);
  }
  return ops;
}

// Follows the ops in order and checks when each element is written, reduced, waited for and read.
void check_reduction(const Program& program) {
  const auto count = static_cast<std::size_t>(program.flat.gradient_count);
  std::vector<int> reductions(count, 0), usable(count, 0);
  std::map<TensorId, std::pair<std::int64_t, std::int64_t>> range{
      {program.step.gradients, {0, program.flat.gradient_count}}};
  for (const FlatEntry& entry : program.flat.parameters) range[entry.gradient] = {entry.offset, entry.count};
  for (const FlatTensor& sum : program.flat.reduced) {
    range[sum.tensor] = {sum.offset, program.tensor(sum.tensor).type.shape.count()};
  }
  for (std::size_t id = 0; id < program.tensors.size(); ++id) {
    const Tensor& bucket = program.tensors[id];
    if (bucket.members.empty()) continue;
    const std::int64_t first = range.at(bucket.members.front()).first;
    range[static_cast<TensorId>(id)] = {first, bucket.type.shape.count()};
    for (TensorId member : bucket.members) {  // every member is inside the bucket
      const auto [offset, elements] = range.at(member);
      CHECK(offset >= first);
      CHECK(offset + elements <= first + bucket.type.shape.count());
    }
  }
  const auto change = [&](std::vector<int>& of, TensorId tensor, int by) {
    const auto [offset, elements] = range.at(tensor);
    for (std::int64_t i = offset; i < offset + elements; ++i) of.at(static_cast<std::size_t>(i)) += by;
  };
  for (const Op* op : executed(program)) {
    if (const auto* reduce = op->get_if<AllReduce>()) {
      CHECK(reduce->axis == MeshAxis::data);
      change(reductions, op->inputs[0], 1);
      if (!reduce->asynchronous) change(usable, op->inputs[0], 1);
    } else if (op->get_if<Wait>()) {
      change(usable, op->inputs[0], 1);
    } else if (op->get_if<GradientNorm>()) {
      CHECK(std::all_of(reductions.begin(), reductions.end(), [](int n) { return n == 1; }));
      CHECK(std::all_of(usable.begin(), usable.end(), [](int n) { return n == 1; }));
    } else {
      for (TensorId output : op->outputs) {
        const auto written = range.find(output);
        if (written == range.end()) continue;
        const auto begin = reductions.begin() + written->second.first;  // no element is written after its reduction
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

}  // namespace

TEST_CASE("buckets hold every gradient once, in backward order") {
  std::mt19937 random(1);
  for (int round = 0; round < 30; ++round) {
    const Program program = random_program(random, 1 + static_cast<int>(random() % 20), 1);
    std::vector<TensorId> expected, found;
    for (const FlatEntry& entry : program.flat.parameters) {
      if (entry.gradient != no_tensor) expected.push_back(entry.gradient);
    }
    const auto buckets = gradient_buckets(program.flat, 2000, 20000);
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      std::int64_t bytes = 0;
      for (TensorId gradient : buckets[b]) bytes += program.tensor(gradient).type.bytes();
      const std::int64_t gaps = 16 * static_cast<std::int64_t>(buckets[b].size());
      if (b + 1 < buckets.size()) CHECK(bytes + gaps >= (b == 0 ? 2000 : 20000));
      CHECK(bytes < (b == 0 ? 2000 : 20000) + 3040 * 4);
      found.insert(found.end(), buckets[b].begin(), buckets[b].end());
    }
    CHECK(found == expected);
  }
}

TEST_CASE("every gradient is reduced once, after it is final and before the update") {
  std::mt19937 random(2);
  for (int round = 0; round < 30; ++round) {
    for (const bool overlap : {false, true}) {
      const Program program = random_program(random, 1 + static_cast<int>(random() % 12), 1 + round % 3);
      check_reduction(finished(program, replicas(2, overlap)));
    }
  }
}

TEST_CASE("overlap starts the reduction inside the last backward pass only") {
  std::mt19937 random(3);
  for (const int micro_batches : {1, 2, 3}) {
    const Program program = finished(random_program(random, 20, micro_batches), replicas(4, true));
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
    CHECK(segment.ops.back().def->kind() != "all_reduce");  // computation follows the last reduction
  }
}

TEST_CASE("a rank without samples makes the same reductions") {
  for (const bool overlap : {false, true}) {
    std::mt19937 random(4), again(4);
    const auto full = finished(random_program(random, 9, 3), replicas(3, overlap));
    const auto none = finished(random_program(again, 9, 1, false), replicas(3, overlap));
    check_reduction(none);
    const auto reductions = [](const Program& program) {
      std::vector<std::string> attributes;
      for (const Op* op : executed(program)) {
        if (op->get_if<AllReduce>() == nullptr) continue;
        attributes.push_back(op->def->attributes() + " " + to_string(program.tensor(op->inputs[0]).type.shape));
      }
      return attributes;
    };
    CHECK(reductions(full) == reductions(none));
  }
}

TEST_CASE("one replica, and an evaluation, get no collectives") {
  std::mt19937 random(5);
  Program program = random_program(random, 3, 1);
  CHECK(count(finished(program, replicas(1, true)), "all_reduce") == 0);
  program.segments.pop_back();
  program.schedule.pop_back();
  CHECK(count(reduce_gradients(program, replica(1, 2), replicas(2, true)), "all_reduce") == 0);
}

TEST_CASE("sums are reduced on their own if nothing trains") {
  std::mt19937 random(6);
  Program program = random_program(random, 0, 1);
  const Program alone = finished(program, replicas(2, true));
  CHECK(count(alone, "all_reduce") == 1);
  check_reduction(alone);
}

TEST_CASE("the mesh numbers ranks with tensor innermost") {
  const Mesh mesh{.data = 3, .pipeline = 2, .tensor = 4};
  CHECK(mesh.ranks() == 24);
  std::set<int> seen;
  for (int data = 0; data < 3; ++data) {
    for (int pipeline = 0; pipeline < 2; ++pipeline) {
      for (int tensor = 0; tensor < 4; ++tensor) {
        const int rank = mesh.rank({.data = data, .pipeline = pipeline, .tensor = tensor});
        CHECK(seen.insert(rank).second);
        CHECK(mesh.position(rank) == Mesh::Position{.data = data, .pipeline = pipeline, .tensor = tensor});
      }
    }
  }
  CHECK(mesh.rank({.tensor = 1}) == 1);
  CHECK(mesh.rank({.pipeline = 1}) == 4);
}

TEST_CASE("strategy.data must be the number of ranks") {
  StrategyOptions options;
  CHECK(mesh_of(options, 3) == Mesh{.data = 3});
  options.data.given = 2;
  CHECK(mesh_of(options, 2) == Mesh{.data = 2});
  CHECK_THROWS_AS(mesh_of(options, 3), Error);
}

}  // namespace trainctl::data_parallel_test
