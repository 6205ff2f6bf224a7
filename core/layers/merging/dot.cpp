// dot: products of two layers' outputs, summed over one dimension of each.
#include <array>
#include <cmath>

#include "core/base/format.h"
#include "core/base/table.h"
#include "core/graph/ops/elementwise/combine.h"
#include "core/graph/ops/matmul.h"
#include "core/graph/ops/normalization/layer_norm.h"
#include "core/graph/ops/reshaping/permute.h"
#include "core/graph/ops/reshaping/shaping.h"
#include "core/layers/layer.h"
#include "core/layers/table.h"
#include "core/spec/one_or_more.h"

namespace trainctl {
namespace {

// An operand as matrices: [rows, summed], or [summed, rows] if it is transposed.
struct Matrices {
  TensorId tensor = no_tensor;
  bool transposed = false;
  std::vector<std::int64_t> rows;  // the dimensions that are not summed
};

struct DotOptions final : LayerOptions {
  std::vector<Reference> from;
  OneOrMore<std::int64_t> axes;
  bool normalize = false;

  std::vector<Reference> references() const override { return from; }

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    std::array<std::int64_t, 2> axis{};
    for (const std::size_t i : {0u, 1u}) {
      axis[i] = axis_of(i, layer.shape(inputs[i]).rank());
      if (axis[i] < 0) {
        return layer.error(format("axes: a sample of {} has no dimension {}", to_string(layer.shape(inputs[i])),
                                  axes.items[i % axes.items.size()]),
                           inputs[i]);
      }
    }
    const Shape left = layer.shape(inputs[0]), right = layer.shape(inputs[1]);
    if (left[axis[0]] != right[axis[1]]) {
      return layer.error(
          format("the sums are over dimension {} of {} and dimension {} of {}, which have different sizes", axis[0] + 1,
                 to_string(left), axis[1] + 1, to_string(right)),
          inputs[1]);
    }
    const Matrices a = matrices(layer, inputs[0], axis[0]), b = matrices(layer, inputs[1], axis[1]);
    TensorId y = layer.op(std::make_shared<Matmul>(a.transposed, !b.transposed), {a.tensor, b.tensor})[0];
    if (normalize) y = layer.op(std::make_shared<ScaleBy>(1 / static_cast<float>(left[axis[0]])), {y})[0];
    std::vector<std::int64_t> sizes = a.rows;
    sizes.insert(sizes.end(), b.rows.begin(), b.rows.end());
    if (sizes.empty()) sizes.push_back(1);
    return layer.output(layer.op(std::make_shared<Reshape>(layer.batch_of(Shape(sizes))), {y})[0]);
  }

 private:
  // The dimension of a sample, counted from 0, over which input number i is summed; -1 if it has none.
  std::int64_t axis_of(std::size_t i, std::int64_t rank) const {
    const std::int64_t axis = axes.items[i % axes.items.size()], from_samples = axis < 0 ? axis + rank + 1 : axis;
    return from_samples >= 1 && from_samples <= rank ? from_samples - 1 : -1;
  }

  // A normalized operand is longer by the root of the number of summed values, for which expand() corrects the product.
  Matrices matrices(Layer& layer, const Feature& input, std::int64_t axis) const {
    const Shape x = layer.shape(input);
    Matrices result{input.tensor, false, x.sizes()};
    const std::int64_t summed = x[axis], last = x.rank() - 1;
    result.rows.erase(result.rows.begin() + axis);
    result.transposed = axis == 0 && last > 0 && !normalize;
    if (axis != last && !result.transposed) {
      std::vector<std::int64_t> order{0};
      for (std::int64_t k = 0; k <= last; ++k) {
        if (k != axis) order.push_back(k + 1);
      }
      order.push_back(axis + 1);
      result.tensor = layer.op(std::make_shared<Permute>(std::move(order)), {result.tensor})[0];
    }
    if (normalize) {
      constexpr double least_square = 1e-14;  // Keras' epsilon, squared
      const LayerNormAttributes attributes{
          {.epsilon = static_cast<float>(least_square / static_cast<double>(summed)), .scale = false, .center = false},
          false};
      result.tensor = layer.op(std::make_shared<LayerNorm>(attributes), {result.tensor}, {"mean", "rstd"})[0];
    }
    const std::int64_t rows = x.count() / summed;
    const Shape matrix = result.transposed ? Shape{summed, rows} : Shape{rows, summed};
    if (x != matrix) result.tensor = layer.op(std::make_shared<Reshape>(layer.batch_of(matrix)), {result.tensor})[0];
    return result;
  }
};

void check_dot(const DotOptions& options, const Node& node, Reader& reader) {
  if (options.from.size() != 2) {
    reader.error(node.find("from")->location,
                 format("from names {}, but dot needs two", counted(options.from.size(), "layer")));
  }
  if (options.axes.items.empty() || options.axes.items.size() > 2) {
    reader.error(node.find("axes")->location, format("axes has {}, but needs one, or one for each input",
                                                     counted(options.axes.items.size(), "number")));
  }
}

}  // namespace

Section dot() {
  using O = DotOptions;
  return layer_keys<O>("dot",
                       "Products of two layers' outputs, summed over one dimension of each, as Keras' Dot: the output "
                       "has the other dimensions of the first input, then those of the second one.")
      .required("axes", &O::axes,
                "The dimension over which the sums go, or a list of one for each input: 1 is the first dimension of a "
                "sample, -1 the last one.")
      .key("normalize", &O::normalize,
           "Whether vectors along these dimensions are first divided by their lengths, so that the products are "
           "cosines of angles.")
      .check(check_dot);
}

}  // namespace trainctl
