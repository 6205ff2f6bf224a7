// Tests that the search for NaN names the parameter that holds it, although ranks hold shards and exchange buckets.
#include "core/exec/observe/not_finite.h"

#include <cmath>
#include <limits>
#include <mutex>
#include <string>
#include <utility>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/parallel/strategies/mesh_training.h"

namespace trainctl::not_finite_strategies_test {
using namespace trainctl::networks;
using namespace trainctl::mesh_training;
namespace {

// Where NaN is before the step: at the last element that a rank holds of a weight or of an optimizer's state.
struct Spoiled {
  std::string name;
  bool is_state = false;
};

// The first finding of all ranks in a training step.
NotFiniteTensor found_in_step(const Setup& setup, const Spoiled& spoiled) {
  NotFiniteTensor first;
  double earliest = std::numeric_limits<double>::infinity();
  std::mutex one_at_a_time;
  on_mesh(setup.mesh, [&](Communicator& world) {
    Network network(mlp, {input_of("", {8, 8, 2})}, "{name: sgd, momentum: 0.9}");
    RankOfMesh rank(network.job, strategy_of(setup), {.training = batch, .evaluation = batch}, world);
    const auto& tensors = spoiled.is_state ? rank.engine.state() : rank.engine.weights();
    for (const NamedTensor& tensor : tensors) {
      if (tensor.name == spoiled.name && tensor.view.count > 0) {
        tensor.view.as<float>()[tensor.view.count - 1] = std::nanf("");
      }
    }
    rank.engine.upload();
    const int program = rank.programs.training(batch);
    NotFiniteSearch search(rank.engine, program, rank.programs.rank());
    rank.engine.set_observer(&search);
    StepResult result;
    rank.engine.run(program, network.share(rank.programs.rank()), {.learning_rate = 0.1}, result);
    const std::lock_guard lock(one_at_a_time);
    if (search.position() >= earliest) return;
    earliest = search.position();
    first = search.found();
  });
  return first;
}

}  // namespace

TEST_CASE("the search for NaN names the parameter that ranks gather from their shards") {
  const auto whole = CommunicatedDType::float32, rounded = CommunicatedDType::bfloat16;
  for (const bool overlap : {false, true}) {
    for (const auto& [shard, dtype] : {std::pair(Shard::parameters, whole), std::pair(Shard::parameters, rounded),
                                       std::pair(Shard::optimizer, rounded), std::pair(Shard::gradients, rounded)}) {
      for (const char* name : {"second/kernel", "third/bias", "last/kernel"}) {
        CAPTURE(overlap, name, shard, dtype);
        const Setup setup{.mesh = {.data = 2}, .shard = shard, .overlap = overlap, .parameter_dtype = dtype};
        const NotFiniteTensor found = found_in_step(setup, {name});
        CHECK(found.name == name);
        const std::size_t slash = found.name.find('/');
        CHECK(found.words ==
              format("the weight '{}' of layer '{}'", found.name.substr(slash + 1), found.name.substr(0, slash)));
      }
    }
  }
}

TEST_CASE("the search for NaN names the parameter that an update makes NaN") {
  for (const Shard shard : {Shard::none, Shard::optimizer, Shard::gradients, Shard::parameters}) {
    for (const char* name : {"first/kernel", "third/bias"}) {
      CAPTURE(name, shard);
      const NotFiniteTensor found =
          found_in_step({.mesh = {.data = 2}, .shard = shard}, {std::string("momentum/") + name, true});
      CHECK(found.name == name);
      CHECK(found.phase == "update");
    }
  }
}

}  // namespace trainctl::not_finite_strategies_test
