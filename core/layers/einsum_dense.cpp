// einsum_dense: a dense layer over several dimensions, with the equation of Keras' EinsumDense; parameters kernel and
// bias.
#include <algorithm>
#include <optional>

#include "core/base/format.h"
#include "core/graph/ops/dense.h"
#include "core/graph/ops/reshaping/shaping.h"
#include "core/layers/activations.h"
#include "core/layers/initializers.h"
#include "core/layers/layer.h"
#include "core/layers/regularizers.h"
#include "core/layers/table.h"
#include "core/spec/one_or_more.h"

namespace trainctl {
namespace {

// The letters of an equation "abc,cde->abde" that is a product over the last dimensions: those of the rows (ab), of the
// summed dimensions (c), and of the new ones (de). The rows may be "...".
struct Equation {
  std::string rows, summed, made;

  bool has_ellipsis() const { return rows.starts_with("..."); }
};

bool has_only_letters(std::string text) {
  if (text.starts_with("...")) text.erase(0, 3);
  std::sort(text.begin(), text.end());
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 'a' && c <= 'z'; }) &&
         std::adjacent_find(text.begin(), text.end()) == text.end();
}

// Empty if the equation is not such a product.
std::optional<Equation> parse(const std::string& text) {
  const std::size_t comma = text.find(','), arrow = text.find("->");
  if (comma == std::string::npos || arrow == std::string::npos || arrow < comma) return {};
  const std::string x = text.substr(0, comma), kernel = text.substr(comma + 1, arrow - comma - 1),
                    y = text.substr(arrow + 2);
  if (!has_only_letters(x) || !has_only_letters(kernel) || !has_only_letters(y)) return {};
  for (std::size_t summed = 1; summed < kernel.size(); ++summed) {
    const Equation equation{x.substr(0, x.size() - std::min(x.size(), summed)), kernel.substr(0, summed),
                            kernel.substr(summed)};
    const bool shares = equation.rows.find_first_of(kernel) != std::string::npos;
    if (!equation.rows.empty() && !shares && x == equation.rows + equation.summed &&
        y == equation.rows + equation.made) {
      return equation;
    }
  }
  return {};
}

struct EinsumDenseOptions final : ChainedLayer {
  std::string equation;
  OneOrMore<std::optional<std::int64_t>> output_shape;
  ActivationChoice activation{"linear"};
  std::optional<std::string> bias_axes;
  InitializerChoice kernel_initializer{"glorot_uniform"};
  InitializerChoice bias_initializer{"zeros"};
  RegularizerChoice kernel_regularizer, bias_regularizer;

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    const Equation letters = *parse(equation);
    const Shape& x = layer.type(inputs[0]).shape;
    const auto summed = std::ssize(letters.summed), made = std::ssize(letters.made);
    const bool fits = letters.has_ellipsis() ? x.rank() > summed : x.rank() == std::ssize(letters.rows) + summed;
    if (!fits) {
      return layer.error(format("the equation {} does not have the dimensions of a batch of {}", equation,
                                to_string(layer.shape(inputs[0]))),
                         inputs[0]);
    }
    const std::vector<std::int64_t> all = x.sizes();
    const std::vector<std::int64_t> rows(all.begin(), all.end() - summed), last(all.end() - summed, all.end());
    std::vector<std::int64_t> sizes;
    for (auto size = output_shape.items.end() - made; size != output_shape.items.end(); ++size) sizes.push_back(**size);
    std::vector<std::int64_t> of_kernel = last;
    of_kernel.insert(of_kernel.end(), sizes.begin(), sizes.end());
    const TensorId product = append_product(layer, inputs[0].tensor, rows, Shape(last), Shape(of_kernel), Shape(sizes));
    if (made == 1) return layer.output(layer.activate(product, activation));
    // An element-wise activation follows the product directly, so that it can be fused. Others need the last dimension.
    if (activation_function(activation).kind == ActivationKind::none) {
      return layer.output(layer.activate(reshaped(layer, product, rows, sizes), activation));
    }
    return layer.output(reshaped(layer, layer.activate(product, activation), rows, sizes));
  }
  const Choice* final_activation() const override { return &activation; }

 private:
  static TensorId reshaped(Layer& layer, TensorId x, std::vector<std::int64_t> rows,
                           const std::vector<std::int64_t>& last) {
    rows.insert(rows.end(), last.begin(), last.end());
    return layer.op(std::make_shared<Reshape>(Shape(std::move(rows))), {x})[0];
  }

  TensorId append_product(Layer& layer, TensorId x, const std::vector<std::int64_t>& rows, const Shape& summed,
                          const Shape& kernel, const Shape& made) const {
    if (summed.rank() > 1) x = reshaped(layer, x, rows, {summed.count()});
    std::vector<TensorId> operands{x, layer.parameter("kernel", kernel, make_initializer(kernel_initializer, kernel),
                                                      true, penalty_of(kernel_regularizer))};
    if (bias_axes) {
      operands.push_back(
          layer.parameter("bias", made, make_initializer(bias_initializer, made), false, penalty_of(bias_regularizer)));
    }
    return layer.op(std::make_shared<Dense>(), operands)[0];
  }
};

void check_equation(const EinsumDenseOptions& options, const Node& node, Reader& reader) {
  const std::optional<Equation> letters = parse(options.equation);
  if (!letters) {
    return reader.error(node.find("equation")->location,
                        format("equation {}: supported are products over the last dimensions of the input, whose new "
                               "dimensions come last, such as abc,cd->abd or abc,cde->abde or abcd,cde->abe",
                               options.equation));
  }
  const auto& sizes = options.output_shape.items;
  const std::string& made = letters->made;
  const bool known = sizes.size() >= made.size() && std::all_of(sizes.end() - std::ssize(made), sizes.end(),
                                                                [](auto& size) { return size && *size > 0; });
  if (!known) {
    reader.error(node.find("output_shape")->location,
                 format("output_shape must end with the sizes of {}, the new dimensions of the equation", made));
  }
  if (options.bias_axes && *options.bias_axes != made) {
    reader.error(node.find("bias_axes")->location,
                 format("bias_axes {} is not supported: the bias has the new dimensions of the equation, {}",
                        *options.bias_axes, made));
  }
}

}  // namespace

Section einsum_dense() {
  using O = EinsumDenseOptions;
  return layer_keys<O>(
             "einsum_dense",
             "A dense layer with an equation, as Keras' EinsumDense: the sums are over the last dimensions of "
             "the input, and the new dimensions come last. abc,cde->abde makes heads of size e.")
      .required("equation", &O::equation,
                "The letters of the input's dimensions, with the batch first, of the kernel's and of the output's; ... "
                "stands for any number of first dimensions.")
      .required("output_shape", &O::output_shape,
                "Sizes of the output's dimensions without the batch; none for a size that follows from the input.")
      .key("activation", &O::activation, "Activation of the outputs.")
      .key("bias_axes", &O::bias_axes,
           "The letters of the bias' dimensions: the new dimensions; none: there is no bias.")
      .key("kernel_initializer", &O::kernel_initializer, "Initial values of the kernel.")
      .key("bias_initializer", &O::bias_initializer, "Initial values of the bias.")
      .key("kernel_regularizer", &O::kernel_regularizer, "A penalty on the kernel.")
      .key("bias_regularizer", &O::bias_regularizer, "A penalty on the bias.")
      .check(check_equation);
}

}  // namespace trainctl
