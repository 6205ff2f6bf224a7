// Compares losses, metrics, inference and optimizers with PyTorch's values; tests that every golden value is used.
#include <cmath>
#include <set>

#include "core/backend/select.h"
#include "core/graph/ops/losses/losses.h"
#include "core/graph/ops/normalization/batch_norm.h"
#include "core/graph/ops/optimizers/optimizers.h"
#include "core/graph/ops/training/update.h"
#include "test/catch.h"
#include "test/core/ops/golden.h"
#include "test/core/ops/metric_cases.h"
#include "test/core/ops/op_cases.h"

namespace trainctl::test::golden_test {
namespace {

struct LossCase {
  const char* name;
  LossRule rule;
};
const LossCase losses[] = {
    {"loss_sparse_categorical_crossentropy", SparseCategoricalCrossentropy{}},
    {"loss_sparse_categorical_crossentropy_smoothed", SparseCategoricalCrossentropy{{0.125f}}},
    {"loss_categorical_crossentropy", CategoricalCrossentropy{}},
    {"loss_categorical_crossentropy_smoothed", CategoricalCrossentropy{{0.125f}}},
    {"loss_binary_crossentropy", BinaryCrossentropy{}},
    {"loss_binary_crossentropy_smoothed", BinaryCrossentropy{0.125f}},
    {"loss_mean_squared_error", MeanSquaredError{}},
    {"loss_mean_absolute_error", MeanAbsoluteErrorLoss{}},
    {"loss_mean_absolute_percentage_error", MeanAbsolutePercentageErrorLoss{}},
    {"loss_log_cosh", LogCosh{}},
    {"loss_mean_squared_logarithmic_error", MeanSquaredLogarithmicError{}},
    {"loss_poisson", Poisson{}},
    {"loss_cosine_similarity", CosineSimilarityLoss{}},
    {"loss_hinge", Hinge{}},
    {"loss_hinge_signed", Hinge{}},
    {"loss_squared_hinge", SquaredHinge{}},
    {"loss_squared_hinge_signed", SquaredHinge{}},
    {"loss_categorical_hinge", CategoricalHinge{}},
    {"loss_kl_divergence", KlDivergence{}},
    {"loss_binary_focal_crossentropy", BinaryFocalCrossentropy{}},
    {"loss_binary_focal_crossentropy_balanced", BinaryFocalCrossentropy{true, 0.375f, 1.5f, 0.125f}},
    {"loss_binary_focal_crossentropy_flat", BinaryFocalCrossentropy{.gamma = 0}},
    {"loss_sparse_categorical_focal_crossentropy", SparseCategoricalFocalCrossentropy{}},
    {"loss_categorical_focal_crossentropy", CategoricalFocalCrossentropy{}},
    {"loss_categorical_focal_crossentropy_smoothed", CategoricalFocalCrossentropy{{0.75f, 0.5f, 0.125f}}},
    {"loss_dice", Dice{}},
    {"loss_masked_dice", Dice{}},
    {"loss_ctc", Ctc{}},
    {"loss_ctc_last_class", Ctc{.mask_index = 4}},
    {"loss_masked_ctc", Ctc{}},
    {"loss_huber", Huber{}},
    {"loss_huber_near", Huber{4.0f}},
    {"loss_sequence", SparseCategoricalCrossentropy{}},
    {"loss_masked_sequence", SparseCategoricalCrossentropy{}},
};

// Returns a rule with betas and an epsilon that differ from the defaults; the golden file was made with them.
template <class Rule>
Rule other() {
  Rule rule;
  rule.beta_1 = 0.75f, rule.beta_2 = 0.9375f, rule.epsilon = 1e-3f;
  return rule;
}
template <class Rule>
Rule with_epsilon_hat() {
  Rule rule = other<Rule>();
  rule.epsilon_hat = true;
  return rule;
}
template <class Rule>
Rule with_amsgrad() {
  Rule rule = other<Rule>();
  rule.amsgrad = true;
  return rule;
}

struct OptimizerCase {
  const char* name;
  OptimizerRule rule;
  double learning_rate;
  float weight_decay = 0, clip_norm = 0;
};
const std::vector<OptimizerCase>& optimizers() {
  static const std::vector<OptimizerCase> cases{
      {"sgd", Sgd{}, 0.125},
      {"sgd_momentum", Sgd{.momentum = 0.875f}, 0.125},
      {"sgd_nesterov_decay", Sgd{.momentum = 0.875f, .nesterov = true}, 0.125, 0.0625f},
      {"sgd_clip", Sgd{.momentum = 0.875f}, 0.125, 0.0625f, 0.5f},
      {"adam", Adam{}, 0.0625},
      {"adam_decay_clip", other<Adam>(), 0.0625, 0.25f, 0.5f},
      {"adam_epsilon_hat", with_epsilon_hat<Adam>(), 0.0625, 0.25f, 0.5f},
      {"adamw", AdamW{}, 0.0625, 0.25f},
      {"adamw_clip", other<AdamW>(), 0.0625, 0.25f, 0.5f},
      {"adamw_epsilon_hat", with_epsilon_hat<AdamW>(), 0.0625, 0.25f, 0.5f},
      {"adam_amsgrad", with_amsgrad<Adam>(), 0.0625, 0.25f, 0.5f},
      {"adamw_amsgrad", with_amsgrad<AdamW>(), 0.0625, 0.25f},
      {"adamax", Adamax{}, 0.0625},
      {"adamax_decay_clip", other<Adamax>(), 0.0625, 0.25f, 0.5f},
      {"ftrl", Ftrl{}, 0.0625},
      {"ftrl_decay_clip",
       Ftrl{.learning_rate_power = -0.75f,
            .initial_accumulator_value = 0.25f,
            .l1_regularization_strength = 0.5f,
            .l2_regularization_strength = 0.125f,
            .l2_shrinkage_regularization_strength = 0.0625f,
            .beta = 0.5f},
       0.0625, 0.25f, 0.5f},
      {"nadam", Nadam{}, 0.0625},
      {"nadam_decay_clip", other<Nadam>(), 0.0625, 0.25f, 0.5f},
      {"rmsprop", RmsProp{}, 0.0625},
      {"rmsprop_momentum", RmsProp{.rho = 0.75f, .momentum = 0.875f, .epsilon = 1e-3f}, 0.0625, 0.25f, 0.5f},
      {"rmsprop_centered", RmsProp{.rho = 0.75f, .momentum = 0.5f, .epsilon = 1e-3f, .centered = true}, 0.0625},
      {"adagrad", Adagrad{}, 0.0625},
      {"adagrad_decay_clip", Adagrad{.initial_accumulator_value = 0, .epsilon = 1e-3f}, 0.0625, 0.25f, 0.5f},
      {"adadelta", Adadelta{}, 1},
      {"adadelta_decay_clip", Adadelta{.rho = 0.75f, .epsilon = 1e-3f}, 1, 0.25f, 0.5f},
      {"lion", Lion{}, 0.0625},
      {"lion_decay_clip", Lion{.beta_1 = 0.75f, .beta_2 = 0.9375f}, 0.0625, 0.25f, 0.5f},
      {"lamb", Lamb{}, 0.0625},
      {"lamb_decay_clip", other<Lamb>(), 0.0625, 0.25f, 0.5f},
      {"lars", Lars{}, 0.25},
      {"lars_decay_clip", Lars{.momentum = 0.75f, .trust_coefficient = 0.125f}, 0.5, 0.25f, 0.5f},
      {"adafactor", Adafactor{}, 0.25},
      {"adafactor_decay_clip",
       Adafactor{
           .beta_2_decay = -0.5f, .epsilon_1 = 1e-4f, .epsilon_2 = 2, .clip_threshold = 0.75f, .relative_step = false},
       0.25, 0.25f, 0.5f},
  };
  return cases;
}

// Returns row `index` of a matrix.
Value row_of(const Value& matrix, std::int64_t index) {
  const std::int64_t count = matrix.type.shape[1];
  const auto first = matrix.values.begin() + index * count;
  return {{Shape{count}, matrix.type.dtype}, {first, first + count}};
}

}  // namespace

TEST_CASE("losses and their gradients equal PyTorch's") {
  const auto backend = backend_under_test();
  const Golden golden("ops.safetensors");
  const DType dtype = GENERATE(DType::float32, DType::bfloat16, DType::float16);
  if (!backend->computes_in(dtype)) return;
  for (const LossCase& which : losses) {
    CAPTURE(which.name, name_of(dtype));
    auto inputs = golden.numbered(std::string(which.name) + "/in");
    inputs[0] = in_dtype(inputs[0], dtype);
    const auto def = std::make_shared<Loss>(which.rule, true, false);
    def->masked = inputs.size() > 3;
    const auto outputs = run_op(*backend, def, inputs);
    check_close(outputs[0], golden.at(std::string(which.name) + "/out0"), DType::float32);
    check_close(outputs[2], golden.at(std::string(which.name) + "/din0"), dtype);
    if (dtype != DType::float32) continue;

    for (const std::size_t element : {0u, 7u, 16u, 23u, 34u}) {  // 16 belongs to the skipped sample
      const auto sum = [&](double step) {
        auto moved = inputs;
        moved[0].values[element] += step;
        return run_op(*backend, def, moved)[0].values[0];
      };
      constexpr double step = 0x1p-5;
      CHECK(outputs[2].values[element] == Approx((sum(step) - sum(-step)) / (2 * step)).epsilon(2e-3).margin(2e-4));
    }
  }
}

TEST_CASE("metrics equal PyTorch's and Keras'") {
  const auto backend = backend_under_test();
  const Golden golden("ops.safetensors");
  const DType dtype = GENERATE(DType::float32, DType::bfloat16, DType::float16);
  if (!backend->computes_in(dtype)) return;
  for (const auto& [name, rule] : metric_cases()) {
    CAPTURE(name, name_of(dtype));
    auto inputs = golden.numbered(std::string(name) + "/in");
    inputs[0] = in_dtype(inputs[0], dtype);
    const auto def = std::make_shared<Metric>(rule, false);
    def->masked = inputs.size() > 3;
    const Value sums = run_op(*backend, def, inputs)[0];
    const double value = value_of(rule, sums.values, golden.at(std::string(name) + "/count").values[0]);
    check_close(scalar(value), golden.at(std::string(name) + "/out0"), DType::float32);
  }
}

TEST_CASE("batch normalisation with running statistics equals PyTorch's") {
  const auto backend = backend_under_test();
  const Golden golden("ops.safetensors");
  const DType dtype = GENERATE(DType::float32, DType::bfloat16, DType::float16);
  if (!backend->computes_in(dtype)) return;
  for (const bool residual : {false, true}) {
    const std::string name = residual ? "batch_norm_inference_residual_relu" : "batch_norm_inference";
    auto inputs = golden.numbered(name + "/in");
    inputs[0] = in_dtype(inputs[0], dtype);
    if (residual) inputs[5] = in_dtype(inputs[5], dtype);
    const BatchNormAttributes attributes{.residual = residual, .relu = residual};
    CAPTURE(name, name_of(dtype));
    check_close(run_op(*backend, std::make_shared<BatchNormInference>(attributes), inputs)[0],
                golden.at(name + "/out0"), dtype);
  }
}

TEST_CASE("optimizers take PyTorch's steps") {
  const auto backend = backend_under_test();
  const Golden golden("ops.safetensors");
  for (const OptimizerCase& which : optimizers()) {
    const std::string name = which.name;
    const auto update = std::make_shared<OptimizerUpdate>(which.rule);
    Factors matrix({2, 17}), vector({17});
    vector.offset = matrix.count();
    update->ranges = {{0, 34, true, matrix}, {34, 17, false, vector}};
    update->weight_decay = which.weight_decay;
    update->clip_norm = which.clip_norm;
    const Value gradients = golden.at(name + "/in1"), after = golden.at(name + "/out0"),
                norms = golden.at(name + "/norms");
    const Value count = scalar(16), flags = row({0, 0});
    std::vector<Value> regions = {golden.at(name + "/in0")};
    while (regions.size() < 1 + state_names(which.rule).size())
      regions.push_back(row(std::vector<double>(is_factored(which.rule) ? 36 : 51)));  // states begin at zero
    for (std::int64_t step = 0; step < gradients.type.shape[0]; ++step) {
      CAPTURE(name, step);
      const Value gradient = row_of(gradients, step);
      const Value norm = run_op(*backend, std::make_shared<GradientNorm>(51), {gradient, count})[0];
      CHECK(norm.values[0] == Approx(norms.values[static_cast<std::size_t>(step)]).epsilon(1e-6));
      regions = run_op(
          *backend, update,
          {gradient, scalar(which.learning_rate), scalar(static_cast<double>(step), DType::int64), count, flags, norm},
          regions);
      check_close(regions[0], row_of(after, step), DType::float32);
    }
    for (std::size_t i = 1; i < regions.size(); ++i) {
      CAPTURE(name, i);
      // The second moment is off by a constant factor that bias correction removes: 1 - 0.999f is 1.3e-5 too large.
      const bool corrected = name == "adam" || name == "adamw" || name == "nadam" || name == "lamb";
      const Value state = golden.at(name + "/out" + std::to_string(i));
      CHECK(deviation(regions[i].values, state.values).typical < (corrected ? 2e-5 : 1e-6));
    }
  }
}

TEST_CASE("every golden value is used by a test") {
  std::set<std::string> known{"batch_norm_inference", "batch_norm_inference_residual_relu"};
  for (const OpCase& which : op_cases()) known.insert(which.name);
  for (const LossCase& which : losses) known.insert(which.name);
  for (const auto& [name, kind] : metric_cases()) known.insert(name);
  for (const OptimizerCase& which : optimizers()) known.insert(which.name);
  CHECK(Golden("ops.safetensors").cases() == known);
}

}  // namespace trainctl::test::golden_test
