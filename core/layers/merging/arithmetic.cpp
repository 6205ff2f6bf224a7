// The layers multiply, subtract, average, maximum and minimum, which combine several layers' outputs element by
// element.
#include "core/base/format.h"
#include "core/base/table.h"
#include "core/graph/ops/elementwise/activations.h"
#include "core/graph/ops/elementwise/combine.h"
#include "core/layers/merging/merging.h"
#include "core/layers/table.h"

namespace trainctl {
namespace {

// Combines all inputs, one after the other. `combine(so_far, next)` combines two features and returns the result, or an
// unknown feature after reporting an error.
template <class Combine>
Feature fold(Layer& layer, const std::vector<Feature>& inputs, const Combine& combine) {
  Feature result = inputs[0];
  for (std::size_t i = 1; i < inputs.size() && result.known(); ++i) result = combine(result, inputs[i]);
  return result.known() ? layer.output(result.tensor) : result;
}

Feature unequal(Layer& layer, const Feature& a, const Feature& b) {
  return layer.error(format("{} of '{}' and {} of '{}' are different shapes", to_string(layer.shape(a)), a.layer,
                            to_string(layer.shape(b)), b.layer),
                     b);
}

// Appends the op on two inputs; reports an error if their shapes differ.
Feature combined(Layer& layer, std::shared_ptr<const OpDef> def, const Feature& a, const Feature& b) {
  if (layer.shape(a) != layer.shape(b)) return unequal(layer, a, b);
  return layer.output(layer.op(std::move(def), {a.tensor, b.tensor})[0]);
}

// Whether `shape` has a single position and the same number of channels as the shape `of`.
bool is_of_channels(const Shape& shape, const Shape& of) {
  return shape.rank() == of.rank() && shape.rank() > 1 && shape.back() == of.back() && shape.rows() == 1;
}

struct MultiplyOptions final : MergingLayer {
  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    return fold(layer, inputs, [&](const Feature& a, const Feature& b) {
      const bool factors_first = is_of_channels(layer.shape(a), layer.shape(b));
      const Feature &x = factors_first ? b : a, &factors = factors_first ? a : b;
      if (layer.shape(a) == layer.shape(b) || !is_of_channels(layer.shape(factors), layer.shape(x))) {
        return combined(layer, std::make_shared<Multiply>(), a, b);
      }
      return layer.output(layer.op(std::make_shared<MultiplyChannels>(), {x.tensor, factors.tensor})[0]);
    });
  }
};

struct SubtractOptions final : MergingLayer {
  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    if (layer.shape(inputs[0]) != layer.shape(inputs[1])) return unequal(layer, inputs[0], inputs[1]);
    const TensorId negative = layer.op(std::make_shared<ScaleBy>(-1.0f), {inputs[1].tensor})[0];
    return layer.output(layer.op(std::make_shared<Add>(), {inputs[0].tensor, negative})[0]);
  }
};

struct AverageOptions final : MergingLayer {
  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    const Feature sum = fold(layer, inputs, [&](const Feature& a, const Feature& b) {
      return combined(layer, std::make_shared<Add>(), a, b);
    });
    if (!sum.known()) return sum;
    const float share = 1.0f / static_cast<float>(inputs.size());
    return layer.output(layer.op(std::make_shared<ScaleBy>(share), {sum.tensor})[0]);
  }
};

template <Extreme which>
struct ExtremeOptions final : MergingLayer {
  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    return fold(layer, inputs, [&](const Feature& a, const Feature& b) {
      return combined(layer, std::make_shared<Extremum>(which), a, b);
    });
  }
};

void check_two(const SubtractOptions& options, const Node& node, Reader& reader) {
  if (options.from.size() == 2) return;
  reader.error(node.find("from")->location,
               format("from names {}, but a difference needs two", counted(options.from.size(), "layer")));
}

}  // namespace

Section multiply() {
  return layer_keys<MultiplyOptions>("multiply",
                                     "The product of several layers' outputs. An output may have a single position (1, "
                                     "1, channels): it is a factor for each channel of the others.")
      .check(check_several);
}
Section subtract() {
  return layer_keys<SubtractOptions>("subtract", "The first layer's output minus the second's.").check(check_two);
}
Section average() {
  return layer_keys<AverageOptions>("average", "The mean of several layers' outputs.").check(check_several);
}
Section maximum() {
  return layer_keys<ExtremeOptions<Extreme::largest>>("maximum", "The largest of several layers' outputs.")
      .check(check_several);
}
Section minimum() {
  return layer_keys<ExtremeOptions<Extreme::smallest>>("minimum", "The smallest of several layers' outputs.")
      .check(check_several);
}

}  // namespace trainctl
