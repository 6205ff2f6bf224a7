// Tests that ranks with spectral normalisation learn what one rank learns, that a step that is skipped changes nothing
// on any mesh, and which strategies are refused.
#include <cmath>
#include <limits>
#include <mutex>

#include "test/catch.h"
#include "test/parallel/strategies/mesh_training.h"

namespace trainctl::spectral_norm_strategies_test {
using namespace trainctl::networks;
using namespace trainctl::mesh_training;
namespace {

constexpr const char* network = R"(layers:
  - spectral_normalization: {name: c, layers: [{conv2d: {filters: 8, kernel_size: 3, padding: same, activation: relu}}]}
  - max_pooling2d: {pool_size: 2}
  - flatten
  - spectral_normalization: {name: d, power_iterations: 2, layers: [{dense: {units: 24, activation: tanh}}]}
  - dense: {name: out, units: 3, activation: softmax}
)";

const Case which{"spectral normalization", [] { return Network(network, {input_of("", {8, 8, 2})}, "adam"); }, 0.01};

// Two players whose networks have normalised kernels. The loss of the generator does not depend on the data.
constexpr const char* adversarial = R"(layers:
  - flatten
  - lambda: {name: noise, expression: 'random_normal((shape(x)[0], 24))'}
  - spectral_normalization: {name: make1, layers: [{dense: {units: 48, activation: tanh}}]}
  - spectral_normalization: {name: make2, layers: [{dense: {units: 128}}]}
  - spectral_normalization: {name: judge1, from: flatten, layers: [{dense: {units: 40, activation: relu}}]}
  - dense: {name: judge2, units: 1}
  - spectral_normalization: {name: judge1, from: make2, layers: [{dense: {units: 40, activation: relu}}]}
  - dense: {name: judge2, units: 1}
  - dense: {name: classes, from: flatten, units: 3, activation: softmax}
add_loss:
  discriminator: {from: [judge2@1, judge2@2], inputs: [r, f], expression: softplus(-r) + softplus(f)}
  fool: {from: judge2@2, expression: softplus(-x)}
)";

ProgramSpec::Player player(const std::string& name, std::vector<Reference> losses, std::vector<Reference> trains,
                           const std::string& optimizer, int steps = 1) {
  Reader reader;
  ProgramSpec::Player made{.name = name, .losses = std::move(losses), .trains = std::move(trains), .steps = steps};
  read_choice(optimizer_choices(), parse_yaml(optimizer, "", ".", reader), reader, made.optimizer);
  reader.throw_if_failed();
  return made;
}

const Case players{"spectral normalization of players",
                   [] {
                     Network made(adversarial, {input_of("", {8, 8, 2})}, "sgd");
                     made.job.spec.players = {player("discriminator", {{"discriminator", {}}, {"output", {}}},
                                                     {{"judge*", {}}, {"classes", {}}}, "adam", 2),
                                              player("generator", {{"fool", {}}}, {{"make*", {}}}, "sgd")};
                     return made;
                   },
                   0.01};

// What the ranks of a mesh hold after some steps, and the results.
struct Held {
  WholeTensors weights, state;
  std::vector<double> results;  // sums of losses and evaluations

  bool operator==(const Held&) const = default;
};

// Trains two steps, each with an evaluation before it. With `fails`, a value of one sample is NaN in a further step
// between them.
Held train_with(const Case& which, const Setup& setup, bool fails) {
  Held held;
  std::mutex one_at_a_time;
  on_mesh(setup.mesh, [&](Communicator& world) {
    Network network = which.make();
    network.job.spec.compute = setup.compute;
    const BatchSizes sizes{.training = batch, .evaluation = batch, .gradient_accumulation = setup.micro_batches};
    RankOfMesh rank(network.job, with_stages(network.job, strategy_of(setup)), sizes, world);
    const Batch part = network.share(rank.programs.rank());
    std::vector<double> results;
    const auto run = [&](bool trains, std::int64_t step) {
      StepResult result;
      const int program = trains ? rank.programs.training(batch) : rank.programs.evaluation(batch);
      rank.engine.run(program, part, {.learning_rate = which.learning_rate, .step = step}, result);
      return result;
    };
    for (const std::int64_t step : {0, 1}) {
      results.push_back(run(false, 0).sums[0]);
      results.push_back(run(true, step).sums[0]);
      if (!fails || step > 0) continue;
      const float value = std::exchange(network.inputs[0][2 * 128 + 7], std::numeric_limits<float>::quiet_NaN());
      require(run(true, 1).not_finite, "the step is not finite");
      network.inputs[0][2 * 128 + 7] = value;
    }
    rank.engine.download();
    const std::lock_guard lock(one_at_a_time);
    held.results.insert(held.results.end(), results.begin(), results.end());
    put_together(rank.engine.weights(), held.weights);
    put_together(rank.engine.state(), held.state);
  });
  std::ranges::sort(held.results);  // the ranks finish in any order
  return held;
}

std::string error_of(const Setup& setup) {
  try {
    const Network wrong = which.make();
    build_run_programs(wrong.job.spec, strategy_of(setup), {.training = batch, .evaluation = batch}, 0);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("ranks with spectral normalization learn what one rank learns") {
  const Outcome reference = train(which, {});
  CHECK(reference.losses.back() < 0.9 * reference.losses.front());
  for (const int ranks : {2, 3, 4}) {
    CAPTURE(ranks);
    compare(train(which, {.mesh = {.data = ranks}, .overlap = ranks == 3}), reference);
  }
  for (const Shard shard : {Shard::optimizer, Shard::gradients}) {
    compare(train(which, {.mesh = {.data = 2}, .shard = shard}), reference);
  }
  const Outcome micro_batches = train(which, {.micro_batches = 2});
  compare(train(which, {.mesh = {.data = 2, .pipeline = 2}, .micro_batches = 2}), micro_batches);
}

TEST_CASE("a step that is not finite changes nothing on any mesh, whatever the dtype of the kernels") {
  for (const DType compute : {DType::float32, DType::bfloat16}) {
    for (const Setup& setup :
         {Setup{}, Setup{.micro_batches = 2}, Setup{.mesh = {.data = 2}}, Setup{.mesh = {.data = 3}, .overlap = true},
          Setup{.mesh = {.data = 2}, .shard = Shard::optimizer}, Setup{.mesh = {.data = 2}, .shard = Shard::gradients},
          Setup{.mesh = {.data = 2}, .micro_batches = 2, .shard = Shard::gradients},
          Setup{.mesh = {.pipeline = 2}, .micro_batches = 2},
          Setup{.mesh = {.data = 2, .pipeline = 2}, .micro_batches = 2}}) {
      CAPTURE(name_of(compute), setup.mesh.data, setup.mesh.pipeline, setup.micro_batches, setup.shard);
      Setup of_dtype = setup;
      of_dtype.compute = compute;
      const Held expected = train_with(which, of_dtype, false);
      const Held found = train_with(which, of_dtype, true);
      CHECK(found.weights.at("d/vector_u") != std::vector<float>(24));
      CHECK(found.weights == expected.weights);
      CHECK(found.state == expected.state);
      CHECK(found.results == expected.results);
    }
  }
}

TEST_CASE("after a player whose loss is not finite, all players get their kernels back, and learn in the next step") {
  for (const DType compute : {DType::float32, DType::bfloat16}) {
    for (const int ranks : {1, 2}) {
      CAPTURE(name_of(compute), ranks);
      WholeTensors before, after, again;
      std::mutex one_at_a_time;
      on_mesh({.data = ranks}, [&](Communicator& world) {
        Network network = players.make();
        network.job.spec.compute = compute;
        RankOfMesh rank(network.job, strategy_of({.mesh = {.data = ranks}}), {.training = batch, .evaluation = batch},
                        world);
        const Batch part = network.share(rank.programs.rank());
        const auto run = [&](std::int64_t step) {
          StepResult result;
          rank.engine.run(rank.programs.training(batch), part, {.learning_rate = 0.05, .step = step}, result);
          return result;
        };
        const auto keep = [&](WholeTensors& to) {
          rank.engine.download();
          const std::lock_guard lock(one_at_a_time);
          put_together(rank.engine.weights(), to);
          put_together(rank.engine.state(), to);
        };
        require(!run(0).not_finite, "the first step is finite");
        keep(before);
        const float value = std::exchange(network.inputs[0][2 * 128 + 7], std::numeric_limits<float>::quiet_NaN());
        require(run(1).not_finite, "the second step is not finite");
        keep(after);
        network.inputs[0][2 * 128 + 7] = value;
        require(!run(1).not_finite, "the third step is finite");
        keep(again);
      });
      REQUIRE(before.contains("judge1/layer/kernel"));
      for (const auto& [name, values] : before) {
        CAPTURE(name);
        CHECK(after.at(name) == values);
        CHECK(again.at(name) != after.at(name));
      }
    }
  }
}

TEST_CASE("strategies that split kernels with spectral normalization are refused") {
  for (const Setup& setup :
       {Setup{.mesh = {.tensor = 2}}, Setup{.mesh = {.data = 2}, .shard = Shard::parameters},
        Setup{.mesh = {.data = 2}, .shard = Shard::optimizer, .parameter_dtype = CommunicatedDType::bfloat16}}) {
    const std::string error = error_of(setup);
    CAPTURE(error);
    CHECK(error.find("spectral_normalization needs the whole kernel") != std::string::npos);
  }
}

}  // namespace trainctl::spectral_norm_strategies_test
