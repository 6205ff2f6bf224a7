// Optimizers: Keras' names and defaults, and the update ops that they become.
#include "core/optim/optimizer.h"

#include "test/catch.h"

using namespace trainctl;

namespace {

// An optimizer as a config names it, with all defaults.
Choice by_default(const char* name) { return default_choice(optimizer_choices(), name); }

}  // namespace

TEST_CASE("defaults are Keras'") {
  const auto rate = [](const char* name) { return by_default(name).as<OptimizerOptions>().learning_rate; };
  CHECK(rate("sgd") == 0.01);
  for (const char* name : {"adam", "adamw", "rmsprop", "lamb"}) CHECK(rate(name) == 0.001);
  for (const char* name : {"sgd", "adam", "rmsprop", "lamb"}) {
    CHECK(by_default(name).as<OptimizerOptions>().weight_decay == 0);
  }
  CHECK(by_default("adamw").as<OptimizerOptions>().weight_decay == 0.004);
  CHECK(std::get<Adam>(by_default("adam").as<OptimizerOptions>().rule()).epsilon == 1e-7f);
  CHECK(std::get<RmsProp>(by_default("rmsprop").as<OptimizerOptions>().rule()).rho == 0.9f);
}

TEST_CASE("an optimizer becomes its update") {
  const Choice choice = by_default("adamw");
  const auto update = choice.as<OptimizerOptions>().update({{0, 7, true}, {7, 3, false}}, 2.5);
  CHECK(std::holds_alternative<AdamW>(update->rule));
  CHECK(update->weight_decay == 0.004f);
  CHECK(update->clip_norm == 2.5f);
  CHECK(update->ranges.size() == 2);
  CHECK(update->attributes() == "adamw clip_norm=2.5 weight_decay=0.004 [0,7) [7,10) no decay");
}

TEST_CASE("states are those that the options need") {
  using Names = std::vector<std::string>;
  CHECK(state_names(Sgd{}).empty());
  CHECK(state_names(Sgd{.momentum = 0.5f}) == Names{"momentum"});
  CHECK(state_names(Adam{}) == Names{"m", "v"});
  CHECK(state_names(RmsProp{}) == Names{"mean_square"});
  CHECK(state_names(RmsProp{.centered = true}) == Names{"mean_square", "mean_gradient"});
  CHECK(state_names(Lamb{}) == Names{"m", "v"});
}

TEST_CASE("weight decay can spare biases and norms") {
  struct Options final : OptimizerOptions {
    OptimizerRule rule() const override { return Sgd{}; }
  } options;
  CHECK(options.decays(true));
  CHECK(options.decays(false));
  options.exclude_from_weight_decay = DecayExclusion::biases_and_norms;
  CHECK(options.decays(true));
  CHECK_FALSE(options.decays(false));
}
