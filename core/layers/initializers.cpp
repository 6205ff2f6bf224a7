// The table of initializers, and Keras' rule for fan-in and fan-out.
#include "core/layers/initializers.h"

#include <algorithm>
#include <cmath>

namespace trainctl {
namespace {

using Init = InitializerOptions;

Section without_options(std::string name, std::string meaning) {
  return Keys<Init>(std::move(name), std::move(meaning));
}

Section normal(std::string name, std::string meaning = "Normal numbers.") {
  return Keys<Init>(std::move(name), std::move(meaning))
      .key("mean", &Init::mean, "Mean.")
      .key("stddev", &Init::stddev, "Standard deviation.", at_least(0));
}

Section uniform(std::string name) {
  return Keys<Init>(std::move(name), "Uniform numbers.")
      .key("minval", &Init::minval, "Lower limit.")
      .key("maxval", &Init::maxval, "Upper limit.");
}

}  // namespace

const ChoiceTable& initializer_choices() {
  static const ChoiceTable table{
      "initializer",
      {
          without_options("glorot_uniform", "Uniform of variance 2 / (fan_in + fan_out)."),
          without_options("glorot_normal",
                          "Normal of variance 2 / (fan_in + fan_out), cut off at two standard deviations."),
          without_options("he_uniform", "Uniform of variance 2 / fan_in."),
          without_options("he_normal", "Normal of variance 2 / fan_in, cut off at two standard deviations."),
          without_options("lecun_uniform", "Uniform of variance 1 / fan_in."),
          without_options("lecun_normal", "Normal of variance 1 / fan_in, cut off at two standard deviations."),
          without_options("zeros", "All values are 0."),
          without_options("ones", "All values are 1."),
          Keys<Init>("constant", "All values are one number.")
              .key("value", &Init::value, "The number.")
              .shorthand("value"),
          normal("normal"),
          normal("random_normal"),
          uniform("uniform"),
          uniform("random_uniform"),
          normal("truncated_normal", "Normal numbers, cut off at two standard deviations."),
          Keys<Init>(
              "variance_scaling",
              "Random numbers of variance scale / fan; the glorot, he and lecun initializers are special cases of it.")
              .key("scale", &Init::scale, "The variance times the fan.", more_than(0))
              .key("mode", &Init::mode, "The fan: the number of connections into a unit, out of it, or their mean.")
              .key("distribution", &Init::distribution,
                   "Distribution of the numbers; truncated: cut off at two standard deviations."),
          Keys<Init>("orthogonal",
                     "A matrix (all dimensions but the last, last dimension) with orthonormal columns, or orthonormal "
                     "rows if it has fewer rows; Saxe et al. (2014).")
              .key("gain", &Init::gain, "Factor."),
          Keys<Init>("identity", "1 on the diagonal of a matrix, else 0.").key("gain", &Init::gain, "Factor."),
      }};
  return table;
}

namespace {

// Replaces variance_scaling by the equivalent normal or uniform initializer for the parameter's fans.
void scale_variance(const InitializerOptions& options, Initializer& initializer) {
  const double fan = options.mode == FanMode::fan_in    ? initializer.fan_in
                     : options.mode == FanMode::fan_out ? initializer.fan_out
                                                        : (initializer.fan_in + initializer.fan_out) / 2;
  const double stddev = std::sqrt(options.scale / std::max(1.0, fan));
  switch (options.distribution) {
    case Distribution::truncated_normal:
      initializer.name = "truncated_normal";
      initializer.stddev = stddev / truncated_stddev;
      return;
    case Distribution::untruncated_normal:
      initializer.name = "normal";
      initializer.stddev = stddev;
      return;
    case Distribution::uniform:
      initializer.name = "uniform";
      initializer.maximum = std::sqrt(3.0) * stddev;
      initializer.minimum = -initializer.maximum;
  }
}

}  // namespace

Initializer make_initializer(const Choice& choice, const Shape& shape) {
  const auto& options = choice.as<InitializerOptions>();
  Initializer initializer;
  initializer.name = choice.name.starts_with("random_") ? choice.name.substr(7) : choice.name;
  initializer.value = options.value;
  initializer.mean = options.mean;
  initializer.stddev = options.stddev;
  initializer.minimum = options.minval;
  initializer.maximum = options.maxval;
  initializer.gain = options.gain;
  if (shape.rank() < 2) {
    initializer.fan_in = initializer.fan_out = static_cast<double>(shape.count());
  } else {
    // The area of a convolution's window is a factor of both fans.
    const std::int64_t in = shape[shape.rank() - 2], out = shape.back();
    const double window = static_cast<double>(shape.count() / checked_multiply(in, out));
    initializer.fan_in = window * static_cast<double>(in);
    initializer.fan_out = window * static_cast<double>(out);
  }
  if (choice.name == "variance_scaling") scale_variance(options, initializer);
  return initializer;
}

}  // namespace trainctl
