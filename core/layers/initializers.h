// The initializers that layers offer, by Keras' names.
#pragma once

#include "core/graph/graph.h"
#include "core/spec/values.h"

namespace trainctl {

// Options of variance_scaling: the number of connections that divides the variance, and the distribution of the values.
enum class FanMode { fan_in, fan_out, fan_avg };
enum class Distribution { truncated_normal, untruncated_normal, uniform };

template <>
struct EnumNames<FanMode> {
  static constexpr EnumName<FanMode> names[] = {
      {FanMode::fan_in, "fan_in"}, {FanMode::fan_out, "fan_out"}, {FanMode::fan_avg, "fan_avg"}};
};
template <>
struct EnumNames<Distribution> {
  static constexpr EnumName<Distribution> names[] = {{Distribution::truncated_normal, "truncated_normal"},
                                                     {Distribution::untruncated_normal, "untruncated_normal"},
                                                     {Distribution::uniform, "uniform"}};
};

struct InitializerOptions : Options {
  double value = 0;
  double mean = 0;
  double stddev = 0.05;
  double minval = -0.05;
  double maxval = 0.05;
  double gain = 1;
  double scale = 1;
  FanMode mode = FanMode::fan_in;
  Distribution distribution = Distribution::truncated_normal;
};

// The table of initializers.
const ChoiceTable& initializer_choices();
using InitializerChoice = ChoiceOf<initializer_choices>;

// Returns the initializer of a parameter of this shape: (in, out), (height, width, in, out), or (channels). `identity`
// is only for (in, out); Layer::parameter() reports an error for other shapes.
Initializer make_initializer(const Choice& choice, const Shape& shape);

}  // namespace trainctl
