// Runs the elementwise ops and reductions of programs with and without row groups, and compares their results.
#include "core/compile/row_groups.h"

#include <map>

#include "test/catch.h"
#include "test/core/backend/run_op.h"
#include "test/core/program/job.h"

namespace trainctl::test::row_groups_test {
namespace {

bool is_computed(const Op& op) {
  const std::string_view kind = op.def->kind();
  return kind == "elementwise" || kind == "reduce" || kind == "row_group" || kind == "reshape" || kind == "add";
}

// The values of a segment's tensors. Results of ops that are not computed, and tensors of other segments, are random
// numbers that depend on the tensor.
class SegmentValues {
 public:
  SegmentValues(Backend& backend, const Program& program, const Segment& segment, const Program& original,
                const Segment& original_segment)
      : program_(program) {
    for (const Op& op : original_segment.ops) {
      for (const TensorId id : op.outputs) written_[id] = is_computed(op) ? original.tensor(id).type : TensorType{};
    }
    for (const Op& op : segment.ops) {
      if (!is_computed(op)) continue;
      std::vector<Value> inputs, initial;
      for (const TensorId id : op.inputs) inputs.push_back(value(id));
      std::vector<Value> results;
      if (op.def->kind() == "reshape") {
        results = {{program.tensor(op.outputs[0]).type, inputs[0].values}};
      } else {
        for (const TensorId id : op.outputs)
          initial.push_back(random_value(program.tensor(id).type.shape, program.tensor(id).type.dtype, 5));
        results = run_op(backend, op.def, inputs, initial);
      }
      for (std::size_t i = 0; i < results.size(); ++i) computed[op.outputs[i]] = results[i];
    }
  }

  std::map<TensorId, Value> computed;
  bool reads_what_is_missing = false;

 private:
  Value value(TensorId id) {
    if (const auto found = computed.find(id); found != computed.end()) return found->second;
    const auto written = written_.find(id);
    if (written != written_.end() && written->second.shape.rank() > 0) reads_what_is_missing = true;
    const TensorType& type = program_.tensor(id).type;
    return random_value(type.shape, type.dtype, static_cast<std::uint64_t>(id), 0.25, 1.5);  // roots are no NaN
  }

  const Program& program_;
  std::map<TensorId, TensorType> written_;
};

const char* const normalisation = R"(
  - lambda:
      expression: "(x - mean(x, axis=-1, keepdims=True)) * rsqrt(var(x, axis=-1, keepdims=True) + 0.001) * gamma + beta"
      weights: {gamma: {shape: [600], initializer: ones}, beta: {shape: [600], initializer: zeros}}
)";

}  // namespace

TEST_CASE("row groups have the results of their ops, and write what other ops read") {
  const std::string layers = GENERATE(
      std::string(normalisation), std::string("  - lambda: gelu(x, approximate=False)\n"),
      std::string(
          "  - lambda: softmax(x, axis=[-1]) + logsumexp(x, axis=-1, keepdims=True) * x\n  - lambda: x * sigmoid(x)\n"),
      std::string("  - reshape: {target_shape: [20, 30]}\n  - lambda: \"x - mean(x, axis=[1, 2], keepdims=True) + "
                  "max(x, axis=-1, keepdims=True)\"\n  - flatten\n"));
  const std::string network =
      "layers:\n  - flatten\n  - dense: {units: 600}\n" + layers + "  - dense: {units: 3, activation: softmax}\n";
  const std::string loss =
      GENERATE("sparse_categorical_crossentropy", "{expression: \"mean(square(y_true - y_pred), axis=-1)\"}");
  const TestJob job(network, "sgd", loss);
  const auto backend = backend_under_test({.threads = 2});
  const int micro_batches = GENERATE(1, 2);
  const Program original = job.training(64, micro_batches);
  Program grouped = original;
  group_rows(grouped);
  int groups = 0;
  for (std::size_t s = 0; s < original.segments.size(); ++s) {
    const Segment &before = original.segments[s], &after = grouped.segments[s];
    CAPTURE(layers, loss, name_of(before));
    if (before.phase != Phase::forward && before.phase != Phase::backward) {
      CHECK(after.ops.size() == before.ops.size());
      continue;
    }
    const SegmentValues expected(*backend, original, before, original, before);
    const SegmentValues found(*backend, grouped, after, original, before);
    CHECK(!expected.reads_what_is_missing);
    CHECK(!found.reads_what_is_missing);
    for (const auto& [id, value] : found.computed) {
      CAPTURE(original.tensor(id).name);
      CHECK(value.values == expected.computed.at(id).values);
    }
    for (const Op& op : after.ops) {
      const std::string_view kind = op.def->kind();
      if (kind == "row_group") ++groups;
      // The normalisation reads no large tensor outside of groups, and the sums over all rows are in a group, too.
      if (layers == normalisation && (kind == "elementwise" || kind == "reduce" || kind == "add")) {
        CAPTURE(kind, grouped.tensor(op.outputs[0]).name);
        CHECK(grouped.tensor(op.inputs[0]).type.shape.count() < 16384);
      }
      for (const TensorId id : op.inputs) {  // also of ops that are not computed here
        CHECK((expected.computed.contains(id) ? found.computed.contains(id) : true));
      }
    }
  }
  if (layers == normalisation) CHECK(groups == 1 + micro_batches);
}

TEST_CASE("the values of a loss that is an expression and their gradients are one group") {
  TestJob job("layers: [flatten, {dense: {name: d, units: 600}}]", "sgd",
              "{expression: 'mean(square(y_true - y_pred), axis=-1)'}", "mean_absolute_error");
  job.spec.outputs[0].target.shape = {600};
  job.spec.outputs[0].metrics.clear();
  const int micro_batches = GENERATE(1, 2);
  Program program = job.training(128, micro_batches);
  group_rows(program);
  int groups = 0;
  for (const Segment& segment : program.segments) {
    for (const Op& op : segment.ops) {
      if (op.name != "loss" || program.tensor(op.inputs[0]).type.shape.count() < 16384) continue;
      CHECK(segment.phase == Phase::backward);
      CHECK(op.def->kind() == "row_group");
      ++groups;
    }
  }
  CHECK(groups == micro_batches);
}

}  // namespace trainctl::test::row_groups_test
