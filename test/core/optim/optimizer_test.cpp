// Tests optimizers: Keras' names and defaults, and their update ops.
#include "core/optim/optimizer.h"
#include "core/optim/choices.h"

#include <cmath>

#include "test/catch.h"

namespace trainctl::optimizer_test {
namespace {

// Returns an optimizer of a config with all defaults.
Choice by_default(const char* name) { return default_choice(optimizer_choices(), name); }

}  // namespace

TEST_CASE("defaults are Keras'") {
  const auto rate = [](const char* name) { return by_default(name).as<OptimizerOptions>().learning_rate; };
  CHECK(rate("sgd") == 0.01);
  for (const char* name :
       {"adam", "adamw", "nadam", "adamax", "ftrl", "rmsprop", "adagrad", "adadelta", "lion", "lamb", "adafactor"}) {
    CHECK(rate(name) == 0.001);
  }
  for (const char* name : {"sgd", "adam", "nadam", "adamax", "ftrl", "rmsprop", "adagrad", "adadelta", "lion", "lamb",
                           "lars", "adafactor"}) {
    CHECK(by_default(name).as<OptimizerOptions>().weight_decay == 0);
  }
  CHECK(by_default("adamw").as<OptimizerOptions>().weight_decay == 0.004);
  CHECK(std::get<Adam>(by_default("adam").as<OptimizerOptions>().rule()).epsilon == 1e-7f);
  CHECK(std::get<RmsProp>(by_default("rmsprop").as<OptimizerOptions>().rule()).rho == 0.9f);
  CHECK(std::get<Adadelta>(by_default("adadelta").as<OptimizerOptions>().rule()).rho == 0.95f);
  CHECK(std::get<Adagrad>(by_default("adagrad").as<OptimizerOptions>().rule()).initial_accumulator_value == 0.1f);
  CHECK(std::get<Lion>(by_default("lion").as<OptimizerOptions>().rule()).beta_2 == 0.99f);
}

TEST_CASE("an optimizer makes its update op") {
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
  AdamW with_largest;
  with_largest.amsgrad = true;
  CHECK(state_names(with_largest) == Names{"m", "v", "largest_v"});
  CHECK(state_names(Ftrl{}) == Names{"sum_of_squares", "linear"});
  CHECK(state_names(RmsProp{}) == Names{"mean_square"});
  CHECK(state_names(RmsProp{.centered = true}) == Names{"mean_square", "mean_gradient"});
  CHECK(state_names(Lamb{}) == Names{"m", "v"});
  CHECK(state_names(Adagrad{}) == Names{"sum_of_squares"});
  CHECK(state_names(Lars{}) == Names{"momentum"});
  CHECK(state_names(Lars{.momentum = 0}).empty());
  CHECK(state_names(Adafactor{}) == Names{"second_moment"});
}

TEST_CASE("factors are of a parameter's last two dimensions") {
  const Factors kernel({3, 2, 5, 7}), vector({9}), scalar{Shape{}};
  CHECK(kernel.count() == 3 * 2 * (5 + 7));
  CHECK(vector.count() == 9);
  CHECK(scalar.count() == 1);
  CHECK(factors_shape({3, 2, 5, 7}) == Shape{3, 2, 12});
  CHECK(factors_shape({1, 7}) == Shape{8});
  CHECK(factors_shape({9}) == Shape{9});
}

TEST_CASE("nadam's factors come from the product of all momenta so far") {
  for (const float beta : {0.0f, 0.9f, 0.999f, 0.99999f}) {
    Nadam rule;
    rule.beta_1 = beta;
    double product = 1;
    for (std::int64_t step = 0; step < 5000; ++step) {
      const auto momentum = [&](std::int64_t t) { return beta * (1 - 0.5 * std::pow(0.96, static_cast<double>(t))); };
      const double now = momentum(step + 1), next = momentum(step + 2);
      product *= now;
      if (step > 20 && step % 97 != 0) continue;
      CAPTURE(beta, step);
      CHECK(rule.factor(1, step) == Approx(next / (1 - product * next)));
      CHECK(rule.factor(2, step) == Approx((1 - now) / (1 - product)));
    }
    CHECK(rule.factor(2, std::int64_t{1} << 40) == Approx(1 - beta));
  }
}

TEST_CASE("errors of names from other frameworks suggest the right name") {
  const auto error = [](const char* optimizer, const char* key) {
    Node node = map_node();
    append(node, "name", scalar_node(optimizer));
    append(node, key, scalar_node("0.5"));
    Reader reader;
    Choice choice;
    read_choice(optimizer_choices(), node, reader, choice);
    return reader.diagnostics().empty() ? "" : reader.diagnostics()[0].message;
  };
  CHECK(error("sgd", "learning_rate").empty());
  CHECK(error("sgd", "lr") == "unknown key 'lr' in sgd; did you mean 'learning_rate'?");
  CHECK(error("adam", "decay") == "unknown key 'decay' in adam; did you mean 'weight_decay'?");
  CHECK(error("rmsprop", "alpha") == "unknown key 'alpha' in rmsprop; did you mean 'rho'?");
  CHECK(error("sgd", "alpha") == "unknown key 'alpha' in sgd");
}

TEST_CASE("weight decay can spare biases and norms, or parameters with certain names") {
  struct Options final : OptimizerOptions {
    OptimizerRule rule() const override { return Sgd{}; }
  } options;
  CHECK(options.decays("a/kernel", true));
  CHECK(options.decays("a/bias", false));
  options.exclude_from_weight_decay = DecayExclusion::biases_and_norms;
  CHECK(options.decays("a/kernel", true));
  CHECK_FALSE(options.decays("a/bias", false));
  options.exclude_from_weight_decay = NamePatterns{{"*/bias"}, {"head/*"}};
  CHECK(options.decays("a/kernel", true));
  CHECK(options.decays("a/gamma", false));
  CHECK_FALSE(options.decays("a/bias", false));
  CHECK_FALSE(options.decays("head/kernel", true));
  Reader reader;
  options.check_patterns({"a/bias", "a/kernel"}, reader);
  REQUIRE(reader.diagnostics().size() == 1);
  CHECK(reader.diagnostics()[0].message == "exclude_from_weight_decay: no parameter is named 'head/*'");
}

}  // namespace trainctl::optimizer_test
