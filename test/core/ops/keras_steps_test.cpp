// Tests that optimizers with Keras' options take the same three steps of a vector as Keras 3.15.
#include "core/graph/ops/optimizers/optimizers.h"
#include "test/catch.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test::keras_steps_test {
namespace {

struct Steps {
  const char* name;
  OptimizerRule rule;
  double learning_rate;
  float weight_decay;
  std::vector<std::vector<double>> weights;  // after each step, printed by Keras
};

template <class Rule>
Rule with_epsilon(Rule rule, float epsilon) {
  rule.epsilon = epsilon;
  return rule;
}

Adam keras_adam(Adam rule) {
  rule.epsilon_hat = true;
  return rule;
}
AdamW keras_adam(AdamW rule) {
  rule.epsilon_hat = true;
  return rule;
}
Adam adam_with_largest(float epsilon) {
  Adam rule;
  rule.beta_2 = 0.5f, rule.epsilon = epsilon, rule.amsgrad = true;
  return rule;
}

// An epsilon of 1/16 is large enough to show where the rule adds it.
const std::vector<Steps>& steps() {
  constexpr float epsilon = 0.0625f;
  static const std::vector<Steps> cases{
      {"RMSprop",
       RmsProp{.rho = 0.75f, .epsilon = epsilon, .epsilon_in_root = true},
       0.125,
       0,
       {{0.8232233, -1.9393661, 0.4844054, 0.25},
        {0.7348350, -2.1141069, 0.5153695, 0.0263932},
        {0.8581342, -2.2017286, 0.5076145, 0.1381966}}},
      {"RMSprop(momentum, centered)",
       RmsProp{.rho = 0.75f, .momentum = 0.5f, .epsilon = epsilon, .centered = true, .epsilon_in_root = true},
       0.125,
       0,
       {{0.8110178, -1.9389153, 0.4843978, 0.25},
        {0.6179937, -2.0906153, 0.5075840, 0},
        {0.6450159, -2.2615702, 0.5114214, -0.0124912}}},
      {"Adagrad",
       Adagrad{.initial_accumulator_value = 0.25f, .epsilon = epsilon, .epsilon_in_root = true},
       0.125,
       0,
       {{0.9166667, -1.9727228, 0.4930232, 0.25},
        {0.8771382, -2.0549223, 0.5068907, 0.1408911},
        {0.9307096, -2.0939658, 0.5034252, 0.1908911}}},
      {"Adadelta",
       Adadelta{.rho = 0.75f, .epsilon = epsilon},
       1,
       0,
       {{0.6464466, -1.8787322, 0.4688109, 0.25},
        {0.4299402, -2.2383459, 0.5308594, -0.1972136},
        {0.7381883, -2.4573231, 0.5152080, 0.1027864}}},
      {"Nadam",
       with_epsilon(Nadam{}, epsilon),
       0.125,
       0,
       {{0.8819125, -1.9114344, 0.4557172, 0.25},
        {0.8256173, -2.0153337, 0.5043801, 0.1326603},
        {0.8801509, -2.0704844, 0.4948195, 0.1784006}}},
      {"Adam",
       keras_adam(with_epsilon(Adam{}, epsilon)),
       0.125,
       0,
       {{0.9747621, -1.9925646, 0.4980544, 0.25},
        {0.9490794, -2.0070295, 0.4996169, 0.2187490},
        {0.9413931, -2.0257864, 0.5002139, 0.2084257}}},
      {"Adam(beta_2, amsgrad)",
       keras_adam(adam_with_largest(epsilon)),
       0.125,
       0,
       {{0.8937777, -1.9267768, 0.4673495, 0.25},
        {0.7979180, -1.9791518, 0.4852561, 0.1759683},
        {0.7714735, -2.0404372, 0.4912966, 0.1535431}}},
      {"Adamax(beta_2)",
       Adamax{.beta_2 = 0.5f, .epsilon = epsilon},
       0.125,
       0,
       {{0.8888889, -1.9166667, 0.4583333, 0.25},
        {0.7415205, -1.9619883, 0.4764254, 0.1880805},
        {0.7146360, -2.0503647, 0.4839593, 0.1552802}}},
      {"Ftrl",
       Ftrl{},
       0.125,
       0,
       {{0.3598332, -0.0940870, -0.0098691, 0},
        {0.3111771, -0.1974493, 0.0142543, -0.1191828},
        {0.3742045, -0.2452093, 0.0082304, -0.0653914}}},
      {"Ftrl with all options",
       Ftrl{.learning_rate_power = -0.75f,
            .initial_accumulator_value = 0.25f,
            .l1_regularization_strength = 0.25f,
            .l2_regularization_strength = 0.125f,
            .l2_shrinkage_regularization_strength = 0.0625f,
            .beta = 0.5f},
       0.125,
       0,
       {{0.1169558, 0, 0, 0}, {0.0889424, -0.0151510, 0, -0.0569947}, {0.1239554, -0.0411198, 0, -0.0233952}}},
      {"AdamW",
       keras_adam(with_epsilon(AdamW{}, epsilon)),
       0.125,
       0.25f,
       {{0.9435121, -1.9300646, 0.4824294, 0.2421875},
        {0.8883446, -1.8842150, 0.4689160, 0.2033682},
        {0.8528976, -1.8440900, 0.4548594, 0.1866896}}},
      {"Lamb",
       with_epsilon(Lamb{}, epsilon),
       0.125,
       0,
       {{0.7792321, -1.8344239, 0.4172117, 0.25},
        {0.6028559, -1.9390826, 0.4526352, 0.1001771},
        {0.5175791, -2.1687732, 0.4748813, 0.0149561}}},
      {"Lion",
       Lion{},
       0.125,
       0.25f,
       {{0.8437500, -1.8125000, 0.3593750, 0.2421875},
        {0.6923828, -1.8808594, 0.4731445, 0.1096191},
        {0.7957458, -1.9470825, 0.3333588, 0.2311935}}},
      {"SGD(momentum, nesterov)",
       Sgd{.momentum = 0.5f, .nesterov = true},
       0.125,
       0,
       {{0.9062500, -1.9765625, 0.4941406, 0.25},
        {0.8437500, -2.0664062, 0.5048828, 0.0625},
        {0.8984375, -2.1269531, 0.5034180, 0.125}}},
      {"Adafactor(relative_step=False) at a learning rate of 2, which Keras limits all the same",
       Adafactor{},
       2,
       0,
       {{-0.1524431, -0.8475569, -0.6524431, 0.25},
        {-0.3778879, -1.2863879, -0.2401370, -0.1988790},
        {0.0180952, -1.5808647, -0.3926943, 0.1007621}}},
  };
  return cases;
}

}  // namespace

TEST_CASE("optimizers take Keras' steps with the options that import sets") {
  const auto backend = backend_under_test();
  const std::vector<std::vector<double>> gradients{
      {0.5, -0.125, 0.03125, 0}, {0.25, 0.5, -0.0625, 1}, {-0.375, 0.25, 0.015625, -0.5}};
  for (const Steps& which : steps()) {
    const auto update = std::make_shared<OptimizerUpdate>(which.rule);
    update->ranges = {{0, 4, true, Factors({4})}};
    update->weight_decay = which.weight_decay;
    std::vector<Value> regions{row({1, -2, 0.5, 0.25})};
    while (regions.size() < 1 + state_names(which.rule).size()) regions.push_back(row({0, 0, 0, 0}));
    for (std::size_t step = 0; step < gradients.size(); ++step) {
      CAPTURE(which.name, step);
      regions = run_op(*backend, update,
                       {row(gradients[step]), scalar(which.learning_rate),
                        scalar(static_cast<double>(step), DType::int64), scalar(1), row({0, 0}), scalar(1)},
                       regions);
      CHECK(largest_error(regions[0], which.weights[step]) < 2e-6);
    }
  }
}

}  // namespace trainctl::test::keras_steps_test
