// Tests the arena of real networks: lifetimes are those of the program, and the plan is close to the lower bound.
#include <algorithm>
#include <map>

#include "core/compile/liveness.h"
#include "core/graph/ops/images/convolution.h"
#include "test/catch.h"
#include "test/core/program/job.h"

namespace trainctl::network_arena_test {
namespace {

// Returns the lifetimes of activations from their first to their last use; a use of an alias is a use of its tensor.
std::vector<Lifetime> lifetimes(const Program& program) {
  std::map<TensorId, Lifetime> by_tensor;
  int moment = 0;
  for (const ScheduleItem& item : program.schedule) {
    for (const Op& op : program.segments[static_cast<std::size_t>(item.segment)].ops) {
      std::vector<TensorId> used = op.inputs;
      used.insert(used.end(), op.outputs.begin(), op.outputs.end());
      for (TensorId id : used) {
        while (id != no_tensor && program.tensor(id).alias_of != no_tensor) id = program.tensor(id).alias_of;
        if (id == no_tensor || program.tensor(id).role != Role::activation) continue;
        Lifetime& lifetime =
            by_tensor.try_emplace(id, Lifetime{program.tensor(id).type.bytes(), moment, moment, -1}).first->second;
        lifetime.last = moment;
      }
      ++moment;
    }
  }
  std::vector<Lifetime> result;
  for (const auto& [id, lifetime] : by_tensor) result.push_back(lifetime);
  return result;
}

std::string residual_stage(int blocks, int filters, int strides) {
  std::string text;
  for (int i = 0; i < blocks; ++i) {
    const std::string f = std::to_string(filters), s = std::to_string(i == 0 ? strides : 1);
    text += "  - residual:\n      layers:\n        - conv2d: {filters: " + f + ", kernel_size: 3, strides: " + s +
            ", padding: same, use_bias: false}\n        - batch_normalization\n        - activation: relu\n" +
            "        - conv2d: {filters: " + f + ", kernel_size: 3, padding: same, use_bias: false}\n" +
            "        - batch_normalization\n";
    if (i == 0 && strides > 1) {
      text += "      shortcut:\n        - conv2d: {filters: " + f + ", kernel_size: 1, strides: " + s +
              ", use_bias: false}\n        - batch_normalization\n";
    }
    text += "      activation: relu\n";
  }
  return text;
}

}  // namespace

TEST_CASE("residual and plain networks are planned within 2 % of the bound") {
  const std::string head = "  - global_average_pooling2d\n  - dense: {units: 10, activation: softmax}\n";
  const std::string residual = "layers:\n  - conv2d: {filters: 16, kernel_size: 3, padding: same}\n" +
                               residual_stage(3, 16, 1) + residual_stage(3, 32, 2) + residual_stage(3, 64, 2) + head;
  std::string plain = "layers:\n";
  for (int filters : {32, 64, 128}) {
    for (int i = 0; i < 2; ++i) {
      plain +=
          "  - conv2d: {filters: " + std::to_string(filters) + ", kernel_size: 3, padding: same, activation: relu}\n";
    }
    plain += "  - max_pooling2d: {pool_size: 2}\n";
  }
  for (const std::string& network : {residual, plain + head}) {
    TestJob job(network, "sgd");
    job.spec.inputs[0].sample = {32, 32, 3};
    for (const std::int64_t batch : {64, 7}) {
      const std::vector<Lifetime> needs = lifetimes(job.training(batch));
      const ArenaPlan plan = plan_arena(needs);
      CAPTURE(needs.size(), plan.bytes, plan.lower_bound);
      CHECK(static_cast<double>(plan.bytes) <= 1.02 * static_cast<double>(plan.lower_bound));
    }
  }
}

TEST_CASE("a residual block is fused into convolutions and normalisations, and so are its gradients' sums") {
  const TestJob job("layers:\n" + residual_stage(2, 2, 2) + "  - flatten\n  - dense: {units: 3}\n", "sgd");
  std::map<std::string, int> kinds;
  const Program program = job.training(4);
  for (const Op& op : program.segments[0].ops) ++kinds[std::string(op.def->kind())];
  CHECK(kinds == std::map<std::string, int>{{"conv2d", 5}, {"batch_norm", 5}, {"reshape", 1}, {"dense", 1}});

  int adding = 0;
  for (const Op& op : program.segments[1].ops) {
    CHECK(op.def->kind() != "add");
    adding += op.def->kind() == "conv2d_grad_input" && op.as<Conv2dGradInput>().accumulate;
  }
  CHECK(adding == 1);  // the second block's input; the first block's needs no gradient
}

TEST_CASE("relu's mask after a residual has one bit per element, and the arena keeps it until the backward pass") {
  const TestJob job("layers:\n" + residual_stage(2, 16, 2) + "  - flatten\n  - dense: {units: 3}\n", "sgd");
  const Program program = job.training(4);
  std::map<TensorId, int> masks;  // number of times that each mask is read or written
  for (const Segment& segment : program.segments) {
    if (segment.phase != Phase::forward && segment.phase != Phase::backward) continue;
    for (const Op& op : segment.ops) {
      if (op.def->kind() == "batch_norm" && op.outputs.size() > 3) {
        ++masks[op.outputs[3]];
        CHECK(program.tensor(op.outputs[3]).type.bytes() * 8 == program.tensor(op.outputs[0]).type.shape.count());
      }
      for (TensorId input : op.inputs) {
        if (op.def->kind() == "batch_norm_grad" && masks.contains(input)) ++masks[input];
      }
    }
  }
  CHECK(masks.size() == 2);
  for (const auto& [mask, uses] : masks) {
    CHECK(uses == 2);
    CHECK(program.tensor(mask).role == Role::activation);
  }
}

}  // namespace trainctl::network_arena_test
