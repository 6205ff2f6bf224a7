// category_encoding: tokens as values that are 1 for the tokens that occur, or their counts.
#include "core/graph/ops/one_hot.h"
#include "core/graph/ops/reduce.h"
#include "core/graph/ops/reshaping/shaping.h"
#include "core/layers/images.h"
#include "core/layers/layer.h"
#include "core/layers/table.h"
#include "core/spec/values.h"

namespace trainctl {

enum class CategoryOutput { one_hot, multi_hot, count };

template <>
struct EnumNames<CategoryOutput> {
  static constexpr EnumName<CategoryOutput> names[] = {
      {CategoryOutput::one_hot, "one_hot"}, {CategoryOutput::multi_hot, "multi_hot"}, {CategoryOutput::count, "count"}};
};

namespace {

struct CategoryEncodingOptions final : ChainedLayer {
  std::int64_t num_tokens = 0;
  CategoryOutput output_mode = CategoryOutput::multi_hot;

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    if (!holds_tokens(layer, inputs[0])) return {};
    const Shape tokens = layer.type(inputs[0]).shape;
    if (tokens.rank() < 2) {
      return layer.error("a sample is one token without a dimension: let the shape of a sample be [1]", inputs[0]);
    }
    const TensorId each = layer.op(std::make_shared<OneHot>(num_tokens), {inputs[0].tensor})[0];
    if (output_mode == CategoryOutput::one_hot) return one_hot(layer, tokens, each);
    const auto last = static_cast<int>(tokens.rank()) - 1;
    const auto kind = output_mode == CategoryOutput::count ? ReduceKind::sum : ReduceKind::maximum;
    auto over_tokens = std::make_shared<Reduce>(kind, last, last + 1);
    over_tokens->dtype = layer.compute();
    return layer.output(layer.op(std::move(over_tokens), {each})[0]);
  }
  std::int64_t tokens() const override { return num_tokens; }

 private:
  // A last dimension of one token is left out, as in Keras.
  Feature one_hot(Layer& layer, const Shape& tokens, TensorId each) const {
    if (layer.compute() != DType::float32) each = layer.op(std::make_shared<Cast>(layer.compute()), {each})[0];
    if (tokens.back() != 1) return layer.output(each);
    return layer.output(layer.op(std::make_shared<Reshape>(tokens.with_back(num_tokens)), {each})[0]);
  }
};

}  // namespace

Section category_encoding() {
  using O = CategoryEncodingOptions;
  return layer_keys<O>("category_encoding",
                       "Turns the tokens of a sample into values, one for each token of the vocabulary. An input of "
                       "the model that this layer reads holds tokens, which are whole numbers from 0.")
      .required("num_tokens", &O::num_tokens, "Size of the vocabulary: all tokens are below it.",
                between(1, max_channels))
      .key(
          "output_mode", &O::output_mode,
          "multi_hot: 1 for each token that occurs in the last dimension, else 0; count: how often it occurs; one_hot: "
          "such values for each single token.");
}

}  // namespace trainctl
