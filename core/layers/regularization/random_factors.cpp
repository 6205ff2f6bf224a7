// The layers gaussian_dropout and alpha_dropout, which are expressions of random numbers in training.
#include <cmath>

#include "core/layers/expression/layer_expression.h"
#include "core/layers/table.h"

namespace trainctl {
namespace {

struct RandomFactors : ChainedLayer {
  double rate = 0;

  MaskUse mask_use() const final { return MaskUse::keeps; }
  bool numbers_samples() const final { return true; }
  bool changes_values_alone() const final { return true; }
};

// x times normal numbers of mean 1 and of the variance that dropout's factors have.
struct GaussianDropoutOptions final : RandomFactors {
  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    if (!layer.training() || rate == 0) return layer.output(inputs[0].tensor);
    return expand_expression(layer, inputs[0], "x * random_normal(x, 1, deviation)",
                             {{"deviation", std::sqrt(rate / (1 - rate))}});
  }
};

// Dropped values become the limit of selu far below zero; then all values are scaled and shifted so that the mean
// 0 and the variance 1 of values stay the same.
struct AlphaDropoutOptions final : RandomFactors {
  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    if (!layer.training() || rate == 0) return layer.output(inputs[0].tensor);
    constexpr double limit = -1.7580993408473766;
    const double scale = 1 / std::sqrt((1 - rate) * (1 + rate * limit * limit));
    return expand_expression(layer, inputs[0], "where(random_uniform(x) >= rate, x, limit) * scale + shift",
                             {{"rate", rate}, {"limit", limit}, {"scale", scale}, {"shift", -scale * limit * rate}});
  }
};

template <class Options>
Section section_of_factors(const char* kind, const char* meaning) {
  return layer_keys<Options>(kind, meaning)
      .required("rate", &Options::rate, "As in dropout: the share of values that dropout would set to zero.",
                from_zero_to_below(1))
      .shorthand("rate");
}

}  // namespace

Section gaussian_dropout() {
  return section_of_factors<GaussianDropoutOptions>(
      "gaussian_dropout",
      "In training, multiplies values by normal numbers of mean 1 and variance rate / (1 - rate) (Srivastava et al., "
      "2014).");
}

Section alpha_dropout() {
  return section_of_factors<AlphaDropoutOptions>(
      "alpha_dropout",
      "In training, sets values to the negative limit of selu at random, and keeps the mean and the variance of values "
      "with mean 0 and variance 1 (Klambauer et al., 2017). Use it with selu.");
}

}  // namespace trainctl
