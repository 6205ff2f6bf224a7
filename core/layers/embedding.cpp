// embedding: maps each token to its row of the parameter embeddings (input_dim, output_dim).
#include "core/graph/ops/embedding.h"

#include "core/layers/images.h"
#include "core/layers/initializers.h"
#include "core/layers/layer.h"
#include "core/layers/masks.h"
#include "core/layers/regularizers.h"
#include "core/layers/table.h"

namespace trainctl {
namespace {

struct EmbeddingOptions final : ChainedLayer {
  std::int64_t input_dim = 0;
  std::int64_t output_dim = 0;
  InitializerChoice embeddings_initializer{"uniform"};
  RegularizerChoice embeddings_regularizer;
  bool mask_zero = false;

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    if (!holds_tokens(layer, inputs[0])) return {};
    const Shape table{input_dim, output_dim};
    const TensorId parameter = layer.parameter("embeddings", table, make_initializer(embeddings_initializer, table),
                                               true, penalty_of(embeddings_regularizer));
    const TensorId rows = layer.op(std::make_shared<Embedding>(layer.compute()), {inputs[0].tensor, parameter})[0];
    return layer.output(rows, mask_zero ? mask_of_tokens(layer, inputs[0]) : no_tensor);
  }
  MaskUse mask_use() const override { return MaskUse::own; }
  std::int64_t tokens() const override { return input_dim; }
};

}  // namespace

Section embedding() {
  using O = EmbeddingOptions;
  return layer_keys<O>("embedding",
                       "Replaces each token by a vector. Tokens are whole numbers from 0, of any shape, which gets one "
                       "more dimension. An input of the model that this layer reads holds tokens.")
      .required("input_dim", &O::input_dim, "Size of the vocabulary: all tokens are below it.",
                between(1, max_channels))
      .required("output_dim", &O::output_dim, "Length of the vectors.", between(1, max_channels))
      .key("embeddings_initializer", &O::embeddings_initializer, "Initial values of the vectors.")
      .key("embeddings_regularizer", &O::embeddings_regularizer, "A penalty on the vectors.")
      .key("mask_zero", &O::mask_zero, mask_zero_meaning);
}

}  // namespace trainctl
