// Optimizers: Keras' names and defaults, and the update ops that they become.
#include "core/optim/optimizer.h"

#include "core/optim/adam.h"
#include "core/optim/sgd.h"
#include "test/catch.h"

using namespace trainctl;

TEST_CASE("defaults are Keras'") {
  CHECK(SgdOptions().learning_rate == 0.01);
  CHECK(SgdOptions().states().empty());
  CHECK(AdamOptions().learning_rate == 0.001);
  CHECK(AdamWOptions().weight_decay == 0.004);
  for (const char* name : {"sgd", "adam", "adamw"}) CHECK(default_choice(optimizer_choices(), name));
}

TEST_CASE("sgd becomes its update") {
  SgdOptions options;
  options.momentum = 0.9;
  options.nesterov = true;
  options.weight_decay = 5e-4;
  const auto update = std::dynamic_pointer_cast<const SgdUpdate>(options.update({{0, 7, true}, {7, 3, false}}, 2.5));
  REQUIRE(update);
  CHECK(update->momentum == 0.9f);
  CHECK(update->nesterov);
  CHECK(update->weight_decay == 5e-4f);
  CHECK(update->clip_norm == 2.5f);
  CHECK(update->ranges.size() == 2);
  CHECK(options.states() == std::vector<std::string>{"momentum"});
}

TEST_CASE("adam and adamw differ in how weights decay") {
  const auto adam = std::dynamic_pointer_cast<const AdamUpdate>(AdamOptions().update({{0, 1, true}}, 0));
  const auto adamw = std::dynamic_pointer_cast<const AdamUpdate>(AdamWOptions().update({{0, 1, true}}, 0));
  REQUIRE(adam);
  REQUIRE(adamw);
  CHECK_FALSE(adam->decoupled);
  CHECK(adamw->decoupled);
  CHECK(adamw->weight_decay == 0.004f);
  CHECK(adam->epsilon == 1e-7f);
  CHECK(AdamOptions().states().size() == 2);
}

TEST_CASE("weight decay can spare biases and norms") {
  SgdOptions options;
  CHECK(options.decays(true));
  CHECK(options.decays(false));
  options.exclude_from_weight_decay = DecayExclusion::biases_and_norms;
  CHECK(options.decays(true));
  CHECK_FALSE(options.decays(false));
}
