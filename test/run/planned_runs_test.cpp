// Tests the runs that a plan compares: the alternatives that a network, a batch and an optimizer allow, the costs of
// unequal shares and of local steps, and that an internal error does not count as a refusal.
#include "run/planning/planned_runs.h"

#include <algorithm>
#include <set>

#include "core/base/format.h"
#include "parallel/plan/alternatives.h"
#include "run/job/job.h"
#include "test/catch.h"
#include "test/parallel/plan/hand_written_step.h"

namespace trainctl::planned_runs_test {
namespace {

// 24 samples a batch; the first dense layer has `units` units.
std::string config_of(const std::string& optimizer, const std::string& strategy, int units = 96) {
  return format(R"(data: {{dataset: synthetic, samples: 240, shape: [64], classes: 5}}
model: {{layers: [{{dense: {{name: first, units: {}, activation: relu}}}}, {{dense: {{name: last, units: 5}}}}]}}
train: {{batch_size: 24, epochs: 1, loss: sparse_categorical_crossentropy, optimizer: {}}}
strategy: {{{}}}
)",
                units, optimizer, strategy);
}

PlanRequest request_of(const std::string& config, int ranks, int ranks_per_node) {
  const RunSpec spec = load_run_spec("c.yaml", {}, config);
  bool at_hand = true;
  return {spec, known_data(spec, 24, at_hand), ranks, ranks_per_node, {}};
}

// A target on which only communication takes time: a second for each byte.
PlanTarget target_for(const PlanRequest& request) {
  auto costs = std::make_shared<GivenCosts>();
  costs->traffic = [](const Traffic& traffic) { return TrafficSeconds{0, static_cast<double>(traffic.bytes)}; };
  PlanTarget target;
  target.nodes.ranks_per_node = request.ranks_per_node;
  target.costs = costs;
  target.compile = [&request](const std::vector<Program>& programs, const BatchDivision& division) {
    return with_host_memory(compile_without_kernels(programs, request.device), request.spec, request.data, division);
  };
  return target;
}

std::set<std::string> names_of(const PlanRequest& request) {
  std::set<std::string> names;
  for_alternatives(request, [&](const PlanRequest& other, const PlannedRun& run) {
    names.insert(describe(other.spec.strategy, run.strategy.mesh));
  });
  return names;
}

// The error with which a strategy is refused, or "accepted".
std::string refusal(const std::string& config, int ranks) {
  const PlanRequest request = request_of(config, ranks, ranks);
  try {
    configured_run(request);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::config);
    CHECK_FALSE(find_step(request));
    return error.what();
  }
  CHECK(find_step(request));
  return "accepted";
}

}  // namespace

TEST_CASE("alternatives are those that network, batch and optimizer allow") {
  const std::set<std::string> all = names_of(request_of(config_of("adam", ""), 4, 4));
  CHECK(all == std::set<std::string>{
                   "data 4 x pipeline 1 x tensor 1", "data 4 x pipeline 1 x tensor 1, shard optimizer",
                   "data 4 x pipeline 1 x tensor 1, shard gradients",
                   "data 4 x pipeline 1 x tensor 1, shard parameters", "data 2 x pipeline 1 x tensor 2",
                   "data 2 x pipeline 1 x tensor 2, shard optimizer", "data 2 x pipeline 1 x tensor 2, shard gradients",
                   "data 2 x pipeline 1 x tensor 2, shard parameters", "data 1 x pipeline 1 x tensor 4",
                   "data 2 x pipeline 2 x tensor 1", "data 2 x pipeline 2 x tensor 1, shard optimizer",
                   "data 1 x pipeline 2 x tensor 2"});
  const auto kept = [&](const std::function<bool(const std::string&)>& keeps) {
    std::set<std::string> names = all;
    std::erase_if(names, [&](const std::string& name) { return !keeps(name); });
    return names;
  };
  const auto whole = [](const std::string& name) { return name.find("tensor 1") != std::string::npos; };
  const auto unsharded = [](const std::string& name) { return name.find("shard") == std::string::npos; };
  const auto within_nodes = [](const std::string& name) { return name.find("tensor 4") == std::string::npos; };
  const auto of_two = [](const std::string& name) { return name.starts_with("data 2"); };
  CHECK(names_of(request_of(config_of("adam", ""), 4, 2)) == kept(within_nodes));
  CHECK(names_of(request_of(config_of("adam", "", 95), 4, 4)) == kept(whole));  // an odd width
  CHECK(names_of(request_of(config_of("lamb", ""), 4, 4)) ==
        kept([&](const std::string& name) { return whole(name) && unsharded(name); }));
  CHECK(names_of(request_of(config_of("adam", "sync_every: 4"), 4, 4)) == kept(unsharded));
  CHECK(names_of(request_of(config_of("adam", "share: [3, 1]"), 4, 4)) == kept(of_two));
}

TEST_CASE("sequence parallelism is an alternative where ranks can divide the positions") {
  const auto names = [](int positions, const std::string& strategy) {
    const std::string config = format(R"(data: {{dataset: synthetic, samples: 240, shape: [{}, 16], classes: 5}}
model:
  layers:
    - transformer_encoder: {{num_heads: 4, intermediate_dim: 32}}
    - global_average_pooling1d
    - dense: {{units: 5}}
train: {{batch_size: 24, epochs: 1, loss: sparse_categorical_crossentropy, optimizer: adam}}
strategy: {{{}}}
)",
                                      positions, strategy);
    std::set<std::string> found = names_of(request_of(config, 4, 4));
    std::erase_if(found, [](const std::string& name) {
      return name.find("tensor 1") != std::string::npos || name.find("shard") != std::string::npos ||
             name.find("pipeline 1") == std::string::npos;
    });
    return found;
  };
  const std::string two = "data 2 x pipeline 1 x tensor 2", four = "data 1 x pipeline 1 x tensor 4",
                    divided = ", sequence_parallel";
  CHECK(names(8, "") == std::set<std::string>{two, four, two + divided, four + divided});
  CHECK(names(6, "") == std::set<std::string>{two, four, two + divided});  // 4 does not divide 6
  CHECK(names(7, "") == std::set<std::string>{two, four});
  CHECK(names(8, "tensor: 2, sequence_parallel: true") == std::set<std::string>{two + divided, four + divided});
}

TEST_CASE("a refused strategy is a config error with its line") {
  const std::string few = refusal(config_of("adam", "pipeline: 3"), 3);
  CHECK(few.starts_with("c.yaml:4:"));
  CHECK(few.find("the network has 2 layers, too few for 3 stages") != std::string::npos);
  const std::string odd = refusal(config_of("adam", "tensor: 2", 95), 2);
  CHECK(odd.starts_with("c.yaml:4:"));
  CHECK(odd.find("no layer of this network can be split among 2 ranks") != std::string::npos);
  CHECK(refusal(config_of("adam", "place: {0: [first], 1: [lest]}"), 2).find("c.yaml:4:") != std::string::npos);
  CHECK(refusal(config_of("adam", "place: {0: [last], 1: [first]}"), 2).starts_with("c.yaml:4:"));
  CHECK(refusal(config_of("adam", "pipeline: 2, micro_batches: 7"), 2).starts_with("c.yaml:4:"));
  CHECK(refusal(config_of("adam", "data: 3"), 4).starts_with("c.yaml:4:"));
  CHECK(refusal(config_of("adam", "share: [1, 2, 3]"), 2).starts_with("c.yaml:4:"));
  for (const char* strategy : {"tensor: 2", "shard: optimizer", "shard: gradients", "shard: parameters"}) {
    const std::string lamb = refusal(config_of("lamb", strategy), 2);
    CHECK(lamb.starts_with("c.yaml:3:"));
    CHECK(lamb.find("norms of whole parameters") != std::string::npos);
  }
  CHECK(refusal(config_of("lamb", "shard: optimizer"), 1) == "accepted");
}

TEST_CASE("an internal error is not a refusal") {
  PlanRequest request = request_of(config_of("adam", ""), 2, 2);
  request.ranks = 0;  // no caller requests this
  try {
    find_step(request);
    FAIL("a mesh of no ranks");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::internal);
  }
}

TEST_CASE("an alternative's YAML describes it, and keeps the other keys of the config") {
  const std::string kept = "schedule: gpipe, gradient_dtype: bfloat16, recompute: blocks, bucket_size: 3 MB";
  const PlanRequest request = request_of(config_of("adam", kept), 4, 4);
  int count = 0;
  for_alternatives(request, [&](const PlanRequest& other, const PlannedRun&) {
    std::string config = config_of("adam", "");
    config.replace(config.find("strategy:"), std::string::npos, strategy_yaml(other.spec.strategy));
    CAPTURE(config);
    const StrategyOptions again = load_run_spec("c.yaml", {}, config).strategy;
    CHECK(flow_text(Value<StrategyOptions>::write(again)) ==
          flow_text(Value<StrategyOptions>::write(other.spec.strategy)));
    ++count;
  });
  CHECK(count > 5);
}

TEST_CASE("with unequal shares a step takes as long as that of the replica with the most samples") {
  const auto predicted = [](const std::string& strategy) {
    const PlanRequest request = request_of(config_of("adam", strategy), 2, 2);
    PlanTarget target = target_for(request);
    auto costs = std::make_shared<GivenCosts>();  // every kernel takes a second for each sample
    costs->op = [](const PlacedProgram& program, int, int) {
      return static_cast<double>(program.program.micro_batch_samples);
    };
    target.costs = costs;
    return predict(configured_run(request), target);
  };
  const Prediction equal = predicted(""), first = predicted("share: [3, 1]"), second = predicted("share: [1, 3]");
  CHECK(first.step.seconds == Approx(1.5 * equal.step.seconds));  // 18 samples of 24 against 12
  CHECK(second.step.seconds == Approx(first.step.seconds));
  // Only the first replica writes checkpoints.
  CHECK(first.memory() - first.stages[0].memory.staged == second.memory());
  CHECK(first.stages[0].memory.staged > 0);
  CHECK(first.memory() > equal.memory());
  CHECK(predicted("share: auto").step.seconds == equal.step.seconds);
}

TEST_CASE("averaging replicas takes the time of its bytes, divided among the steps") {
  const auto predicted = [](const std::string& strategy, int ranks) {
    const PlanRequest request = request_of(config_of("adam", strategy), ranks, ranks);
    return predict(configured_run(request), target_for(request));
  };
  // Parameters and two states of each layer, as float32.
  constexpr double first = 3 * 4 * (64 * 96 + 96), last = 3 * 4 * (96 * 5 + 5);
  for (const int every : {2, 8}) {
    const Prediction two = predicted(format("sync_every: {}", every), 2);
    CHECK(two.averaging == Approx(first + last));
    CHECK(two.step.seconds == Approx((first + last) / every));
    CHECK(two.step.phases().communication == Approx((first + last) / every));
    CHECK(two.bytes_sent() == Approx((first + last) / every));  // in a ring of two
  }
  CHECK(predicted("", 2).averaging == 0);
  CHECK(predicted("", 2).step.seconds > (first + last) / 3);         // all gradients in every step
  CHECK(predicted("sync_every: 4, pipeline: 2", 2).averaging == 0);  // one replica
  const Prediction stages = predicted("sync_every: 4, pipeline: 2", 4);
  CHECK(stages.averaging == Approx(first));  // the stages average at the same time
  for (const StepSeconds& parts : stages.step.stages) CHECK(parts.total() == Approx(stages.step.seconds));
}

}  // namespace trainctl::planned_runs_test
