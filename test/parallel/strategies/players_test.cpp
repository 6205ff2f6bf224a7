// Tests that replicas of players learn what one rank learns, and that strategies are refused that do not fit players.
#include "test/catch.h"
#include "test/parallel/strategies/mesh_training.h"

namespace trainctl::players_strategies_test {
using namespace trainctl::networks;
using namespace trainctl::mesh_training;
namespace {

constexpr const char* adversarial = R"(layers:
  - flatten
  - lambda: {name: noise, expression: 'random_normal((shape(x)[0], 24))'}
  - dense: {name: make1, units: 48, activation: tanh}
  - dense: {name: make2, units: 128, activation: tanh}
  - dense: {name: judge1, from: flatten, units: 40, activation: relu}
  - dropout: {name: drop, rate: 0.2}
  - dense: {name: judge2, units: 1}
  - dense: {name: judge1, from: make2, units: 40, activation: relu}
  - dropout: {name: drop, rate: 0.2}
  - dense: {name: judge2, units: 1}
  - dense: {name: classes, from: flatten, units: 3, activation: softmax}
add_loss:
  discriminator: {from: [judge2@1, judge2@2], inputs: [r, f], expression: softplus(-r) + softplus(f)}
  fool: {from: judge2@2, expression: softplus(-x)}
)";

ProgramSpec::Player player(const std::string& name, const std::string& loss, const std::string& trains,
                           const std::string& optimizer, int steps = 1) {
  Reader reader;
  ProgramSpec::Player made{.name = name, .losses = {{loss, {}}}, .trains = {{trains, {}}}, .steps = steps};
  read_choice(optimizer_choices(), parse_yaml(optimizer, "", ".", reader), reader, made.optimizer);
  reader.throw_if_failed();
  return made;
}

const Case which{"players",
                 [] {
                   Network network(adversarial, {input_of("", {8, 8, 2})}, "sgd");
                   network.job.spec.players = {player("discriminator", "discriminator", "judge*", "adam", 2),
                                               player("generator", "fool", "make*", "{name: sgd, momentum: 0.9}"),
                                               player("reader", "output", "classes", "sgd")};
                   return network;
                 },
                 0.01};

std::string error_of(const Strategy& strategy, const BatchSizes& sizes) {
  try {
    const Network network = which.make();
    build_run_programs(network.job.spec, strategy, sizes, 0);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("replicas of players learn what one rank learns") {
  const Outcome reference = train(which, {});
  CHECK(reference.losses.back() < 0.9 * reference.losses.front());
  for (const int ranks : {2, 3, 13}) {  // of 13 ranks, one has no sample
    for (const bool overlap : {false, true}) {
      CAPTURE(ranks, overlap);
      compare(train(which, {.mesh = {.data = ranks}, .overlap = overlap}), reference);
    }
  }
  compare(train(which, {.mesh = {.data = 2}, .recompute = Recompute::blocks}), reference);
}

TEST_CASE("strategies that do not fit players are refused") {
  const auto says = [](const Setup& setup, const BatchSizes& sizes, const std::string& text) {
    const std::string error = error_of(strategy_of(setup), sizes);
    CAPTURE(error);
    CHECK(error.find(text) != std::string::npos);
  };
  says({.mesh = {.tensor = 2}}, {.training = batch}, "use data parallelism alone");
  says({.mesh = {.pipeline = 2}}, {.training = batch}, "use data parallelism alone");
  says({.mesh = {.data = 2}, .shard = Shard::optimizer}, {.training = batch}, "use `strategy.shard: none`");
  says({.micro_batches = 2}, {.training = batch, .gradient_accumulation = 2}, "use gradient_accumulation 1");
  says({.recompute = Recompute::automatic}, {.training = batch}, "use `strategy.recompute: blocks`");
}

}  // namespace trainctl::players_strategies_test
