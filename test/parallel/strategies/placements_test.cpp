// Tests that the placement check accepts the programs of data and tensor parallelism, and refuses those of a broken
// strategy.
#include "core/program/placements.h"

#include <algorithm>
#include <set>

#include "core/graph/ops/collectives.h"
#include "parallel/strategies/strategy.h"
#include "test/catch.h"
#include "test/core/program/job.h"

namespace trainctl::placements_test {
namespace {

constexpr const char* every_layer = R"(layers:
  - zero_padding2d: {padding: 1}
  - conv2d: {name: c1, filters: 8, kernel_size: 3, padding: same, use_bias: false}
  - batch_normalization: {name: n1}
  - activation: relu
  - max_pooling2d
  - residual:
      name: block
      layers:
        - conv2d: {filters: 8, kernel_size: 3, padding: same, groups: 2, activation: tanh}
        - batch_normalization
      activation: relu
  - dropout: {name: drop, rate: 0.25}
  - conv2d: {name: left, filters: 4, kernel_size: 1, activation: gelu}
  - conv2d: {name: right, filters: 4, kernel_size: 1, from: drop}
  - concatenate: {from: [left, right]}
  - average_pooling2d
  - layer_normalization
  - flatten
  - dense: {name: d1, units: 16, activation: silu}
  - dense: {name: d2, units: 3, activation: softmax}
)";
constexpr const char* further_layers = R"(layers:
  - conv2d_transpose: {filters: 8, kernel_size: 2, strides: 2, kernel_regularizer: {l2: 1e-3}}
  - prelu: {shared_axes: [1, 2]}
  - depthwise_conv2d: {kernel_size: 3, padding: same, activation: relu6, bias_regularizer: {l1: 1e-3}}
  - group_normalization: {name: n, groups: 2}
  - separable_conv2d: {filters: 8, kernel_size: 3, padding: same, activation: mish}
  - spatial_dropout: 0.2
  - gaussian_noise: {name: noisy, stddev: 0.1}
  - global_average_pooling2d
  - reshape: {target_shape: [1, 1, 8]}
  - conv2d: {name: factors, filters: 8, kernel_size: 1, activation: hard_sigmoid}
  - multiply: {name: scaled, from: [noisy, factors]}
  - conv2d: {name: other, filters: 8, kernel_size: 3, padding: same, activation: elu, from: n}
  - maximum: {from: [scaled, other]}
  - cropping2d: {cropping: 1}
  - upsampling2d
  - average: {name: mean, from: [upsampling2d, upsampling2d]}
  - global_max_pooling2d
  - dense: {units: 3, activation: softmax}
)";
constexpr const char* pooled = R"(layers:
  - conv2d: {filters: 4, kernel_size: 3}
  - batch_normalization
  - global_average_pooling2d
  - dense: {units: 3}
)";

Strategy mesh_of(const Mesh& mesh, bool overlap) {
  Strategy strategy{mesh, {}, overlap};
  strategy.options.first_bucket_size.bytes = 100;
  strategy.options.bucket_size.bytes = 400;
  return strategy;
}

Program training(const TestJob& job, std::int64_t samples, int micro_batches, const Strategy& strategy) {
  Reader reader;
  Program program = training_program(job.spec, {samples / micro_batches, micro_batches}, reader,
                                     parallelism(strategy, strategy.mesh.ranks() - 1));
  reader.throw_if_failed();
  return program;
}

Program evaluation(const TestJob& job, std::int64_t samples, const Strategy& strategy) {
  Reader reader;
  Program program = evaluation_program(job.spec, samples, reader, parallelism(strategy, 0));
  reader.throw_if_failed();
  return program;
}

// The error of the placement check; empty if there is none.
struct Problem {
  std::string text;
  SourceLocation location;
};
Problem problem_of(Program program, const Mesh& mesh) {
  try {
    check_placements(program, mesh);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::internal);
    return {error.what(), error.location()};
  }
  return {};
}

void check_accepted(const Program& program, const Mesh& mesh) {
  CAPTURE(program.name, mesh.data, mesh.tensor);
  CHECK(problem_of(program, mesh).text.empty());
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// Positions of the reductions of a program: (segment, op).
std::vector<std::pair<std::size_t, std::ptrdiff_t>> reductions(const Program& program) {
  std::vector<std::pair<std::size_t, std::ptrdiff_t>> positions;
  for (std::size_t s = 0; s < program.segments.size(); ++s) {
    const std::vector<Op>& ops = program.segments[s].ops;
    for (auto op = ops.begin(); op != ops.end(); ++op) {
      if (op->get_if<AllReduce>()) positions.emplace_back(s, op - ops.begin());
    }
  }
  return positions;
}

}  // namespace

TEST_CASE("the programs of data parallelism are accepted") {
  const auto network = GENERATE(as<std::string>{}, every_layer, further_layers, pooled, "preset: mlp", "preset: lenet5",
                                "preset: resnet20");
  const DType compute = GENERATE(DType::float32, DType::bfloat16, DType::float16);
  for (const Mesh& mesh : {Mesh{.data = 2}, Mesh{.data = 5}, Mesh{.data = 2, .tensor = 2}}) {
    if (mesh.tensor > 1 && network == pooled) continue;  // it cannot be split
    TestJob job(network, compute == DType::float16 && mesh.tensor == 1 ? "lamb" : "adam");
    if (network.starts_with("preset")) job.spec.inputs[0].sample = {32, 32, 3};
    job.spec.compute = compute;
    for (const bool overlap : {false, true}) {
      const Strategy strategy = mesh_of(mesh, overlap);
      check_accepted(training(job, 6, 1, strategy), mesh);
      check_accepted(training(job, 6, 3, strategy), mesh);
      check_accepted(training(job, 1, 1, strategy), mesh);
      check_accepted(training(job, 0, 1, strategy), mesh);
      for (const std::int64_t samples : {5, 1, 0}) check_accepted(evaluation(job, samples, strategy), mesh);
    }
  }
}

TEST_CASE("sharded updates are accepted, and a missing sum on the tensor axis is refused") {
  TestJob job(every_layer);
  job.spec.clip_norm = 1;
  const Mesh mesh{.data = 3, .tensor = 2};
  for (const Shard shard : {Shard::optimizer, Shard::gradients, Shard::parameters}) {
    for (const CommunicatedDType dtype : {CommunicatedDType::float32, CommunicatedDType::bfloat16}) {
      Strategy strategy = mesh_of(mesh, dtype == CommunicatedDType::float32);
      strategy.options.shard = shard;
      strategy.options.gradient_dtype = dtype;
      CAPTURE(name_of(shard), name_of(dtype));
      for (const std::int64_t samples : {6, 0}) {
        check_accepted(training(job, samples, 1, strategy), mesh);
        check_accepted(evaluation(job, samples, strategy), mesh);
      }
      const Program program = training(job, 6, 2, strategy);
      check_accepted(program, mesh);
      // Each sum over the tensor axis is left out in turn: of an activation, of a gradient, or of squares.
      for (std::size_t s = 0; s < program.segments.size(); ++s) {
        for (std::size_t o = 0; o < program.segments[s].ops.size(); ++o) {
          const Op& op = program.segments[s].ops[o];
          const auto* sum = op.get_if<AllReduce>();
          if (sum == nullptr || sum->axis != MeshAxis::tensor) continue;
          Program changed = program;
          std::vector<Op>& ops = changed.segments[s].ops;
          CAPTURE(op.name);
          if (op.inputs == op.outputs) {
            ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(o));
          } else {
            ops[o].def = std::make_shared<Identity>(MeshAxis::pipeline);
          }
          CHECK(contains(problem_of(std::move(changed), mesh).text, "on the tensor axis"));
        }
      }
    }
  }
}

TEST_CASE("values as targets are accepted") {
  const TestJob job("layers: [flatten, {dense: {units: 2}}]", "{name: sgd, momentum: 0.5}", "mean_squared_error",
                    "mean_absolute_error");
  check_accepted(training(job, 4, 2, mesh_of({.data = 2}, false)), {.data = 2});
}

TEST_CASE("several inputs and outputs are accepted") {
  TestJob job(R"(inputs: [a, b]
outputs: [kind, size]
layers:
  - dense: {name: left, from: a, units: 40}
  - dense: {name: right, from: b, units: 40}
  - add: {name: both, from: [left, right]}
  - dense: {name: kind, units: 3, activation: softmax}
  - dense: {name: size, from: both, units: 3}
)");
  job.spec.inputs = {{"a", {50}, {}}, {"b", {60}, {}}};
  job.spec.outputs.push_back(job.spec.outputs[0]);
  job.spec.outputs[0].name = "kind";
  job.spec.outputs[1].name = "size";
  for (const Mesh& mesh : {Mesh{.data = 2}, Mesh{.data = 2, .tensor = 2}}) {
    const Strategy strategy = mesh_of(mesh, true);
    check_accepted(training(job, 6, 2, strategy), mesh);
    check_accepted(training(job, 0, 1, strategy), mesh);
    check_accepted(evaluation(job, 5, strategy), mesh);
  }
}

TEST_CASE("every tensor has the placement of its role") {
  const Mesh mesh{.data = 2};
  Program program = training(TestJob(every_layer), 6, 3, mesh_of(mesh, true));
  check_placements(program, mesh);
  for (std::size_t i = 0; i < program.tensors.size(); ++i) {
    const Tensor& tensor = program.tensors[i];
    REQUIRE(tensor.placements.size() == mesh_axes);
    CAPTURE(tensor.name, to_string(tensor.placements[0]));
    CHECK(tensor.placements[1] == replicated);
    CHECK(tensor.placements[2] == replicated);
    const Placement& data = tensor.placements[0];
    if (tensor.role == Role::parameter || tensor.role == Role::statistic || tensor.role == Role::state)
      CHECK(data == replicated);
    if (tensor.role == Role::gradient || tensor.role == Role::reduced) CHECK(data == partial);
    if (tensor.role == Role::input) CHECK(data == split_along(0));
    if (contains(tensor.name, "/output")) CHECK((data == split_along(0) || data == replicated));  // if unused
    if (static_cast<TensorId>(i) == program.step.gradient_norm) CHECK(data == replicated);
  }
  const auto placement_of = [&](std::string_view name) {
    const auto found = std::find_if(program.tensors.begin(), program.tensors.end(),
                                    [&](const Tensor& tensor) { return tensor.name == name; });
    REQUIRE(found != program.tensors.end());
    return found->placements[0];
  };
  CHECK(placement_of("n1/mean") == varying);
  CHECK(placement_of("d1/output") == split_along(0));
  CHECK(placement_of("d1/output/gradient") == split_along(0));
  CHECK(placement_of("stop_request") == varying);
}

TEST_CASE("a reduction that is missing, doubled or too early is refused") {
  const Mesh mesh{.data = 2};
  const int micro_batches = GENERATE(1, 2, 3);
  const Program program = training(TestJob(every_layer), 6, micro_batches, mesh_of(mesh, true));
  REQUIRE(problem_of(program, mesh).text.empty());
  const auto positions = reductions(program);
  REQUIRE(positions.size() >= 4);
  for (const auto& [segment, at] : positions) {
    std::vector<Op> ops = program.segments[segment].ops;
    const Op reduction = ops[static_cast<std::size_t>(at)];
    const std::string gradient = program.tensor(program.tensor(reduction.inputs[0]).members[0]).name;
    CAPTURE(micro_batches, reduction.name, gradient);
    const auto broken = [&](std::vector<Op> with) {
      Program changed = program;
      changed.segments[segment].ops = std::move(with);
      return problem_of(std::move(changed), mesh);
    };
    // Left out: the gradients must not be used.
    ops.erase(ops.begin() + at);
    Problem problem = broken(ops);
    CHECK(contains(problem.text, "gradient_norm 'gradient_norm' of 'train 6"));
    CHECK(contains(problem.text, "on the data axis"));
    // The sums, including the count, are members of the last bucket.
    CHECK((contains(problem.text, gradient) || contains(problem.text, "count cannot be partial")));
    CHECK(problem.location.known());
    // Doubled: a replicated tensor must not be summed.
    ops = program.segments[segment].ops;
    ops.insert(ops.begin() + at, reduction);
    problem = broken(ops);
    CHECK(contains(problem.text, "all_reduce '" + reduction.name + "'"));
    CHECK(contains(problem.text, gradient + " is replicated and not partial"));
    CHECK(problem.location.known());
    // At the beginning of the segment: before the last gradient.
    ops = program.segments[segment].ops;
    std::rotate(ops.begin(), ops.begin() + at, ops.begin() + at + 1);
    problem = broken(ops);
    CHECK(!problem.text.empty());
  }
}

TEST_CASE("gradients must not be added to a tensor that is already reduced") {
  const Mesh mesh{.data = 2};
  Program program = training(TestJob(every_layer), 6, 3, mesh_of(mesh, false));
  const auto [segment, at] = reductions(program).at(0);
  Op early = program.segments[segment].ops[static_cast<std::size_t>(at)];
  Tensor bucket = program.tensor(early.inputs[0]);
  bucket.members.resize(1);  // the gradient that is complete first
  program.tensors.push_back(bucket);
  early.inputs = early.outputs = {static_cast<TensorId>(program.tensors.size()) - 1};
  program.segments[1].ops.push_back(early);  // after the first of three micro-batches
  const Problem problem = problem_of(program, mesh);
  CHECK(contains(problem.text, "dense_grad_weights 'd2'"));
  CHECK(contains(problem.text, "d2/kernel/gradient is replicated, but the values added to it are partial"));
  CHECK(problem.location.line == 21);  // of the layer
}

TEST_CASE("weights that a strategy splits must be gathered") {
  const Mesh mesh{.data = 2};
  Program program = training(TestJob(every_layer), 6, 1, mesh_of(mesh, false));
  for (Tensor& tensor : program.tensors) {
    if (tensor.name == "d1/kernel") tensor.placements = placed(split_along(0), {MeshAxis::data});
  }
  const Problem problem = problem_of(program, mesh);
  CHECK(contains(problem.text, "dense 'd1'"));
  CHECK(contains(problem.text, "d1/kernel is split along dimension 0 where"));
  CHECK(problem.location.line == 20);
}

TEST_CASE("values that the host reads must be equal on all ranks") {
  const Mesh mesh{.data = 2};
  Program program = training(TestJob(every_layer), 6, 1, mesh_of(mesh, false));
  std::vector<Op>& update = program.segments.back().ops;
  update.erase(update.begin() + 1, update.end());  // keeps the agreement only
  CHECK(
      contains(problem_of(program, mesh).text, "'loss' of 'train 6' on the data axis is partial where the host reads"));
  // A stop that was requested on one rank only.
  program = training(TestJob(every_layer), 6, 1, mesh_of({.tensor = 2}, false));
  CHECK(problem_of(program, {.tensor = 2}).text.empty());
  std::erase_if(program.segments.back().ops, [](const Op& op) { return op.name == "agree" && op.get_if<AllReduce>(); });
  CHECK(contains(problem_of(program, {.tensor = 2}).text, "agree"));
}

}  // namespace trainctl::placements_test
