// Tests programs of small models: segments, flat layout, accumulation, and the layout that all programs of a run share.

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "core/graph/ops/losses/losses.h"
#include "core/graph/ops/normalization/batch_norm.h"
#include "core/graph/ops/optimizers/optimizers.h"
#include "core/graph/ops/training/update.h"
#include "core/metrics/means.h"
#include "core/program/dump.h"
#include "test/catch.h"
#include "test/core/program/job.h"

namespace trainctl::build_test {
namespace {

constexpr const char* small_network = R"(
layers:
  - conv2d: {name: c1, filters: 4, kernel_size: 3, padding: same, use_bias: false}
  - batch_normalization: {name: n1}
  - activation: relu
  - global_average_pooling2d
  - dense: {name: d1, units: 7, activation: relu}
  - dropout: {rate: 0.25}
  - dense: {name: d2, units: 3, activation: softmax}
)";

const Segment& segment(const Program& program, std::string_view name) {
  for (const Segment& segment : program.segments) {
    if (name_of(segment) == name) return segment;
  }
  throw Error(ErrorKind::internal, "no such segment");
}

std::vector<std::string> kinds(const Segment& segment) {
  std::vector<std::string> kinds;
  for (const Op& op : segment.ops) kinds.emplace_back(op.def->kind());
  return kinds;
}

std::vector<std::string> order(const Program& program) {
  std::vector<std::string> names;
  for (const ScheduleItem& item : program.schedule) {
    names.emplace_back(name_of(program.segments[static_cast<std::size_t>(item.segment)]));
  }
  return names;
}

// Returns the offsets in the layout by name, which must be equal in all programs of a run.
std::map<std::string, std::int64_t> offsets(const Program& program) {
  std::map<std::string, std::int64_t> result;
  for (const FlatEntry& entry : program.flat.parameters) result[program.tensor(entry.parameter).name] = entry.offset;
  for (const FlatTensor& flat : program.flat.statistics) result[program.tensor(flat.tensor).name] = flat.offset;
  for (const FlatTensor& flat : program.flat.reduced) result[program.tensor(flat.tensor).name] = flat.offset;
  return result;
}

using Names = std::vector<std::string>;

// Checks that every op reads tensors that an earlier op of the schedule wrote, or that are there before a step.
void check_order(const Program& program) {
  std::set<TensorId> known;
  const auto add = [&](TensorId id) {
    if (id != no_tensor) known.insert(id);
  };
  for (std::size_t i = 0; i < program.tensors.size(); ++i) {
    const Role role = program.tensors[i].role;
    const auto id = static_cast<TensorId>(i);
    const bool by_host = role == Role::scalar && id != program.step.gradient_norm;
    if (role == Role::parameter || role == Role::statistic || role == Role::input || by_host) add(id);
  }
  for (const ScheduleItem& item : program.schedule) {
    for (const Op& op : program.segments[static_cast<std::size_t>(item.segment)].ops) {
      for (TensorId input : op.inputs) {
        INFO(dump(program, op));
        CHECK((known.contains(input) || input == program.step.gradients));
      }
      std::vector<TensorType> types;
      for (TensorId input : op.inputs) types.push_back(program.tensor(input).type);
      for (TensorId output : op.outputs) add(output);
    }
  }
}

}  // namespace

TEST_CASE("a step is forward, backward and update") {
  const Program program = TestJob(small_network).training(6);
  CHECK(order(program) == Names{"forward", "backward", "update"});
  CHECK(kinds(segment(program, "forward")) ==
        Names{"conv2d", "batch_norm", "global_average_pool2d", "dense", "dropout", "dense"});
  const Names backward = kinds(segment(program, "backward"));
  CHECK(Names(backward.begin(), backward.begin() + 5) ==
        Names{"count", "accumulate_statistics", "count", "metric", "loss"});
  CHECK(kinds(segment(program, "update")) == Names{"agree", "gradient_norm", "optimizer", "update_statistics"});
  check_order(program);
  CHECK(program.tensor(program.batch.targets[0]).type == TensorType{{6}, DType::int32});
  CHECK(program.batch.samples != no_tensor);  // dropout and the count need them
  CHECK(program.step.predictions == std::vector{no_tensor});
  Names results;
  for (const MetricResult& result : program.results) results.push_back(result.name);
  CHECK(results == Names{"loss", "accuracy"});
}

TEST_CASE("parameters are in backward order, each at a multiple of 16 bytes, then the tensors that are reduced") {
  const Program program = TestJob(small_network).training(6);
  const ParameterLayout& flat = program.flat;
  Names names;
  std::int64_t next = 0;
  for (const FlatEntry& entry : flat.parameters) {
    names.push_back(program.tensor(entry.parameter).name);
    CHECK(entry.offset == next);
    CHECK(entry.count == program.tensor(entry.parameter).type.shape.count());
    CHECK(program.tensor(entry.gradient).type == program.tensor(entry.parameter).type);
    next = (next + entry.count + 3) / 4 * 4;
  }
  CHECK(names == Names{"d2/kernel", "d2/bias", "d1/kernel", "d1/bias", "n1/gamma", "n1/beta", "c1/kernel"});
  CHECK(flat.trainable_count == 24 + 4 + 28 + 8 + 4 + 4 + 72);  // 21, 3, 28, 7, 4, 4 and 3 * 3 * 2 * 4, with gaps
  CHECK(flat.parameter_count == flat.trainable_count);
  Names reduced;
  for (const FlatTensor& entry : flat.reduced) {
    reduced.push_back(program.tensor(entry.tensor).name);
    CHECK(entry.offset == next);
    next += program.tensor(entry.tensor).type.shape.count();
  }
  CHECK(reduced ==
        Names{"n1/moving_mean/sum", "n1/moving_variance/sum", "loss", "accuracy", "weight", "count", "agree"});
  CHECK(flat.gradient_count == next);
  CHECK(flat.states == Names{"m", "v"});
  CHECK(program.tensor(program.step.gradients).type.shape == Shape{next});
  CHECK(program.step.states.size() == 2);
}

TEST_CASE("all programs of a run share one layout") {
  const TestJob job(small_network);
  const Program full = job.training(8, 2);
  for (const Program& other : {job.training(5), job.training(1), job.training(0)}) {
    CHECK(offsets(other) == offsets(full));
    CHECK(other.flat.gradient_count == full.flat.gradient_count);
  }
  const Program evaluation = job.evaluation(9);
  auto expected = offsets(full);
  for (const char* name : {"agree", "n1/moving_mean/sum", "n1/moving_variance/sum"}) expected.erase(name);
  CHECK(offsets(evaluation) == expected);
  CHECK(evaluation.flat.gradient_count == full.flat.gradient_count);
}

TEST_CASE("later micro-batches add to the tensors that the first one wrote") {
  const Program program = TestJob(small_network).training(12, 3);
  CHECK(program.micro_batches == 3);
  CHECK(program.micro_batch_samples == 4);
  CHECK(order(program) ==
        Names{"forward", "backward", "forward", "backward_accumulate", "forward", "backward_accumulate", "update"});
  check_order(program);
  const Segment& first = segment(program, "backward");
  const Segment& later = segment(program, "backward_accumulate");
  REQUIRE(first.ops.size() == later.ops.size());
  int adding = 0;
  for (std::size_t i = 0; i < first.ops.size(); ++i) {
    CHECK(first.ops[i].inputs == later.ops[i].inputs);
    CHECK(first.ops[i].outputs == later.ops[i].outputs);
    const bool shared = std::any_of(first.ops[i].outputs.begin(), first.ops[i].outputs.end(), [&](TensorId id) {
      const Role role = program.tensor(id).role;
      return role == Role::gradient || role == Role::reduced;
    });
    const bool adds = later.ops[i].def->attributes().find("accumulate") != std::string::npos;
    CHECK(adds == shared);
    CHECK(first.ops[i].def->attributes().find("accumulate") == std::string::npos);
    adding += adds;
  }
  CHECK(adding >= 7);  // statistics, metric, count, loss, two dense layers, convolution, normalisation
}

TEST_CASE("a rank without samples contributes zeros and updates like the others") {
  const TestJob job(small_network);
  const Program none = job.training(0);
  CHECK(order(none) == Names{"backward", "update"});
  CHECK(kinds(segment(none, "backward")) == Names{"zero_gradients"});
  CHECK(segment(none, "backward").ops[0].as<ZeroGradients>().count == none.flat.gradient_count);
  CHECK(kinds(segment(none, "update")) == kinds(segment(job.training(4), "update")));
  CHECK(none.batch.inputs.empty());
  CHECK(none.micro_batch_samples == 0);
}

TEST_CASE("frozen layers have no gradients, and the backward pass ends at the first layer that trains") {
  const Program head = TestJob(std::string("freeze: [c1, n1]") + small_network).training(6);
  CHECK(kinds(segment(head, "forward")) ==
        Names{"conv2d", "batch_norm_inference", "global_average_pool2d", "dense", "dropout", "dense"});
  CHECK(kinds(segment(head, "backward")) == Names{"count", "metric", "loss", "dense_grad_weights", "dense_grad_input",
                                                  "dropout", "activation_grad", "dense_grad_weights"});
  CHECK(kinds(segment(head, "update")) == Names{"agree", "gradient_norm", "optimizer"});
  CHECK(head.flat.trainable_count == 24 + 4 + 28 + 8);
  CHECK(head.flat.parameter_count == 24 + 4 + 28 + 8 + 4 + 4 + 72);
  check_order(head);

  // Gradients pass through frozen layers after the first one that trains.
  const Program tail = TestJob(std::string("freeze: [n1, d1, d2]") + small_network).training(6);
  const Names backward = kinds(segment(tail, "backward"));
  CHECK(std::count(backward.begin(), backward.end(), "batch_norm_inference_grad") == 1);
  CHECK(std::count(backward.begin(), backward.end(), "dense_grad_weights") == 0);
  CHECK(backward.back() == "conv2d_grad_weights");
  CHECK(tail.flat.trainable_count == 72);
}

TEST_CASE("an evaluation computes sums and probabilities") {
  const Program program = TestJob(small_network).evaluation(5);
  CHECK(order(program) == Names{"forward"});
  CHECK(kinds(segment(program, "forward")) == Names{"conv2d", "batch_norm_inference", "global_average_pool2d", "dense",
                                                    "activation", "dense", "softmax", "count", "metric", "loss"});
  check_order(program);
  CHECK(program.tensor(program.step.predictions[0]).type == TensorType{{5, 3}, DType::float32});
  CHECK(program.step.learning_rate == no_tensor);
  CHECK_FALSE(segment(program, "forward").ops.back().as<Loss>().training);
}

TEST_CASE("bfloat16 networks have predictions in float32") {
  TestJob job(small_network);
  job.spec.compute = DType::bfloat16;
  const Program program = job.evaluation(5);
  CHECK(program.tensor(program.step.predictions[0]).type == TensorType{{5, 3}, DType::float32});
  check_order(job.training(4));
}

TEST_CASE("the update has several ranges if weight decay excludes biases and norms") {
  const auto ranges = [](const char* optimizer) {
    const Program program = TestJob(small_network, optimizer).training(4);
    for (const Op& op : segment(program, "update").ops) {
      if (const auto* update = op.get_if<OptimizerUpdate>()) return update->ranges;
    }
    return std::vector<UpdateRange>{};
  };
  const auto all = ranges("{name: sgd, weight_decay: 1e-3}");
  REQUIRE(all.size() == 1);
  CHECK(all[0].decay);
  const auto spared = ranges("{name: sgd, weight_decay: 1e-3, exclude_from_weight_decay: biases_and_norms}");
  std::int64_t next = 0, decaying = 0;
  for (const UpdateRange& range : spared) {
    CHECK(range.offset == next);
    next += range.count;
    decaying += range.decay ? range.count : 0;
  }
  CHECK(next == all[0].count);
  CHECK(decaying == 24 + 4 * 7 + 3 * 3 * 2 * 4);  // the kernels, 21 elements with a gap
  const auto by_name =
      ranges("{name: sgd, weight_decay: 1e-3, exclude_from_weight_decay: ['*/bias', '*/gamma', '*/beta']}");
  REQUIRE(by_name.size() == spared.size());
  for (std::size_t i = 0; i < spared.size(); ++i) {
    CHECK(by_name[i].offset == spared[i].offset);
    CHECK(by_name[i].decay == spared[i].decay);
  }
}

TEST_CASE("an optimizer that works by parameter has a range for each, with the gap after it") {
  const Program program = TestJob(small_network, "lamb").training(4);
  const auto& ops = segment(program, "update").ops;
  const auto update = std::find_if(ops.begin(), ops.end(), [](const Op& op) { return op.get_if<OptimizerUpdate>(); });
  REQUIRE(update != ops.end());
  const auto& ranges = update->as<OptimizerUpdate>().ranges;
  REQUIRE(ranges.size() == program.flat.parameters.size());
  for (std::size_t i = 0; i < ranges.size(); ++i) CHECK(ranges[i].offset == program.flat.parameters[i].offset);
  CHECK(ranges.back().offset + ranges.back().count == program.flat.trainable_count);
}

TEST_CASE("absolute error is computed from probabilities, not from logits") {
  const TestJob job("layers: [flatten, {dense: {units: 4, activation: sigmoid}}]", "sgd", "binary_crossentropy",
                    "mean_absolute_error");
  const Program program = job.training(3);
  const Segment& backward = segment(program, "backward");
  CHECK(kinds(backward)[0] == "activation");
  CHECK(kinds(backward)[1] == "count");
  CHECK(kinds(backward)[2] == "metric");
  CHECK(backward.ops[2].inputs[0] == backward.ops[0].outputs[0]);
  CHECK(backward.ops[3].inputs[0] == backward.ops[0].inputs[0]);  // the loss reads the logits
}

TEST_CASE("a network that does not fit its data is refused") {
  TestJob job(small_network);
  job.spec.outputs[0].target.classes = 10;
  Reader reader;
  training_program(job.spec, {4, 1}, reader);
  REQUIRE(reader.diagnostics().size() == 1);
  CHECK(reader.diagnostics()[0].message ==
        "the data has 10 classes, but the network has 3 outputs: give it an output for each class");
}

TEST_CASE("a softmax or sigmoid that reads the result of another one is a warning with its place") {
  const auto warnings = [](const std::string& layers, const std::string& loss) {
    TestJob job("layers: [flatten, " + layers + "]", "adam", loss);
    job.spec.outputs[0].target.classes = loss.starts_with("binary") ? 2 : 5;
    return job.training(4).warnings;
  };
  const std::string sparse = "sparse_categorical_crossentropy", sigmoid = "{units: 1, activation: sigmoid}",
                    softmax = "{units: 5, activation: softmax}";
  const auto twice = warnings("{dense: " + softmax + "}, {activation: softmax}", sparse);
  REQUIRE(twice.size() == 1);
  CHECK(twice[0].find("the network ends in a softmax of a softmax: remove one of the two") != std::string::npos);
  const auto logits = warnings("{dense: " + softmax + "}", "{name: " + sparse + ", from_logits: true}");
  REQUIRE(logits.size() == 1);
  CHECK(logits[0].find("from_logits: true adds another one: leave from_logits out") != std::string::npos);
  const auto binary = warnings("{dense: " + sigmoid + "}, {activation: sigmoid}", "binary_crossentropy");
  REQUIRE(binary.size() == 1);
  CHECK(binary[0].find("a sigmoid of a sigmoid") != std::string::npos);
  CHECK(warnings("{dense: " + softmax + "}", sparse).empty());
  CHECK(warnings("{dense: {units: 5}}, {activation: softmax}", sparse).empty());
  CHECK(warnings("{dense: {units: 5}}", sparse).empty());
  CHECK(warnings("{dense: " + sigmoid + "}", "binary_crossentropy").empty());
  CHECK(warnings("{dense: {units: 4, activation: sigmoid}}, {dense: " + sigmoid + "}", "binary_crossentropy").empty());
}

TEST_CASE("shares are divided into micro-batches of at most the planned size") {
  const auto divided = [](std::int64_t samples, std::int64_t largest) {
    const MicroBatches batches = cut_micro_batches(samples, largest);
    return std::vector<std::int64_t>{batches.samples, batches.count, batches.rest};
  };
  CHECK(divided(128, 32) == std::vector<std::int64_t>{32, 4, 0});
  CHECK(divided(48, 32) == std::vector<std::int64_t>{24, 2, 0});
  CHECK(divided(30, 32) == std::vector<std::int64_t>{30, 1, 0});
  CHECK(divided(97, 32) == std::vector<std::int64_t>{25, 3, 22});
  CHECK(divided(454, 32) == std::vector<std::int64_t>{31, 14, 20});
  CHECK(divided(1, 32) == std::vector<std::int64_t>{1, 1, 0});
  CHECK(cut_micro_batches(0, 32).all() == 0);
  for (int samples = 1; samples < 300; ++samples) {
    for (int largest : {1, 2, 7, 32}) {
      const MicroBatches batches = cut_micro_batches(samples, largest);
      CHECK(batches.total() == samples);
      CHECK(batches.samples <= largest);
      CHECK(batches.rest < batches.samples);
      CHECK(batches.all() == (samples + largest - 1) / largest);
    }
  }
}

TEST_CASE("shares are divided into equal micro-batches if that is required") {
  const auto count = [](std::int64_t samples, std::int64_t largest) { return cut_equally(samples, largest).count; };
  CHECK(count(128, 32) == 4);
  CHECK(count(48, 32) == 2);
  CHECK(count(40, 32) == 2);
  CHECK(count(30, 32) == 1);
  CHECK(count(1, 32) == 1);
  CHECK(count(0, 32) == 1);
  CHECK(count(97, 32) == 1);  // prime: one whole share rather than 97 single samples
  CHECK(count(106, 32) == 2);
  for (int samples = 1; samples < 300; ++samples) {
    for (int largest : {1, 2, 7, 32}) {
      const MicroBatches batches = cut_equally(samples, largest);
      CHECK(batches.total() == samples);
      CHECK(batches.rest == 0);
      if (batches.count > 1) CHECK(2 * batches.samples >= largest);
    }
  }
}

TEST_CASE("equal programs have equal texts") {
  const TestJob job(small_network);
  const std::string text = dump(job.training(4, 2));
  CHECK(text == dump(job.training(4, 2)));
  for (const char* part : {"segment backward_accumulate\n", "dense_grad_weights bias accumulate  d2: ",
                           "batch_norm epsilon=0.001 scale center relu  n1: c1/output 2x8x8x4",
                           "  forward micro-batch 1 slot 0\n", "         0 d2/kernel 7x3\n"}) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
  }
}

}  // namespace trainctl::build_test
