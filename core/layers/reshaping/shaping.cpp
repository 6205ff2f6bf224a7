// The layers reshape and permute, which change the shape of samples or the order of their dimensions.
#include <algorithm>

#include "core/base/format.h"
#include "core/base/table.h"
#include "core/graph/ops/reshaping/permute.h"
#include "core/graph/ops/reshaping/shaping.h"
#include "core/layers/layer.h"
#include "core/layers/table.h"

namespace trainctl {
namespace {

struct ReshapeOptions final : ChainedLayer {
  std::vector<std::int64_t> target_shape;

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    const Shape x = layer.shape(inputs[0]);
    std::int64_t known = 1;
    for (const std::int64_t size : target_shape) {
      if (size > 0) known = saturated_multiply(known, size);
    }
    Shape shape{std::vector<std::int64_t>(target_shape)};
    for (std::int64_t k = 0; k < shape.rank(); ++k) {
      if (shape[k] == -1 && x.count() % known == 0) shape[k] = x.count() / known;
    }
    const bool fits = std::ranges::find(shape.sizes(), -1) == shape.sizes().end() && shape.count() == x.count();
    if (!fits) {
      std::string target;
      for (const std::int64_t size : target_shape) target += (target.empty() ? "" : "x") + std::to_string(size);
      return layer.error(format("{} has {}, which {} cannot hold", to_string(x), counted(x.count(), "value"), target),
                         inputs[0]);
    }
    if (shape == x) return layer.output(inputs[0].tensor);
    return layer.output(layer.op(std::make_shared<Reshape>(layer.batch_of(shape)), {inputs[0].tensor})[0]);
  }
};

void check_target(const ReshapeOptions& options, const Node& node, Reader& reader) {
  const SourceLocation& location = node.find("target_shape") ? node.find("target_shape")->location : node.location;
  if (options.target_shape.empty()) reader.error(location, "target_shape has no dimension");
  if (std::ranges::count(options.target_shape, -1) > 1) {
    reader.error(location, "target_shape has more than one dimension of size -1");
  }
  if (std::ranges::find(options.target_shape, 0) != options.target_shape.end()) {
    reader.error(location, "target_shape has a dimension of size 0");
  }
}

struct PermuteOptions final : ChainedLayer {
  std::vector<std::int64_t> dims;

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    const Shape x = layer.shape(inputs[0]);
    std::vector<std::int64_t> sorted = dims, all(static_cast<std::size_t>(x.rank()));
    std::ranges::sort(sorted);
    std::ranges::generate(all, [k = std::int64_t{0}]() mutable { return ++k; });
    if (sorted != all) {
      return layer.error(format("dims must name each dimension of a sample once, from 1 to {}, but the input is {}",
                                x.rank(), to_string(x)),
                         inputs[0]);
    }
    if (dims == all) return layer.output(inputs[0].tensor);
    std::vector<std::int64_t> order = dims;
    order.insert(order.begin(), 0);  // the samples stay
    return layer.output(layer.op(std::make_shared<Permute>(std::move(order)), {inputs[0].tensor})[0]);
  }
};

}  // namespace

Section reshape() {
  return layer_keys<ReshapeOptions>("reshape", "Each sample's values, row by row, in another shape.")
      .required("target_shape", &ReshapeOptions::target_shape,
                "Sizes of a sample's dimensions; -1 for the one that follows from the others.", at_least(-1))
      .shorthand("target_shape")
      .check(check_target);
}

Section permute() {
  return layer_keys<PermuteOptions>("permute", "A sample's dimensions in another order.")
      .required(
          "dims", &PermuteOptions::dims,
          "For each dimension of the output the number of the input's dimension, counted from 1: [2, 1] transposes.",
          at_least(1))
      .shorthand("dims");
}

}  // namespace trainctl
