// position_embedding and token_and_position_embedding: learned vectors of positions, parameter embeddings
// (sequence_length, channels).
#include "core/graph/ops/position_embedding.h"

#include "core/base/format.h"
#include "core/graph/ops/embedding.h"
#include "core/layers/images.h"
#include "core/layers/initializers.h"
#include "core/layers/layer.h"
#include "core/layers/masks.h"
#include "core/layers/table.h"

namespace trainctl {
namespace {

// Whether all positions of the input are in the table; reports an error if they are not.
bool fits(Layer& layer, const Feature& input, std::int64_t sequence_length) {
  const std::int64_t steps = layer.shape(input)[0];
  if (steps <= sequence_length) return true;
  layer.error(
      format("the input has {} positions, but sequence_length is {}: use samples of at most {} positions, or set "
             "sequence_length to {} (of a preset: `with: {{positions: {}}}`)",
             steps, sequence_length, sequence_length, steps, steps),
      input);
  return false;
}

struct PositionEmbeddingOptions final : ChainedLayer {
  Auto<std::int64_t> sequence_length;
  InitializerChoice initializer{"glorot_uniform"};

  MaskUse mask_use() const override { return MaskUse::keeps; }

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    if (!is_sequence(layer, inputs[0])) return {};
    const Shape x = layer.shape(inputs[0]), table{sequence_length.or_else(x[0]), x[1]};
    if (!fits(layer, inputs[0], table[0])) return {};
    const TensorId positions = layer.parameter("embeddings", table, make_initializer(initializer, table), true);
    const auto def = std::make_shared<PositionEmbedding>(false);
    return layer.output(layer.op(def, {inputs[0].tensor, positions})[0]);
  }
};

struct TokenAndPositionEmbeddingOptions final : ChainedLayer {
  std::int64_t vocabulary_size = 0;
  std::int64_t sequence_length = 0;
  std::int64_t embedding_dim = 0;
  InitializerChoice embeddings_initializer{"uniform"};
  bool mask_zero = false;

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    const Shape sample = layer.shape(inputs[0]);
    if (layer.type(inputs[0]).dtype != DType::int32 || sample.rank() != 1) {
      return layer.error(format("input {} is not a sequence of tokens (positions)", to_string(sample)), inputs[0]);
    }
    if (!fits(layer, inputs[0], sequence_length)) return {};
    const auto table = [&](const char* name, std::int64_t rows) {
      const Shape shape{rows, embedding_dim};
      return layer.parameter(name, shape, make_initializer(embeddings_initializer, shape), true);
    };
    const TensorId tokens = table("token_embedding/embeddings", vocabulary_size);
    const TensorId positions = table("position_embedding/embeddings", sequence_length);
    const TensorId rows = layer.op(std::make_shared<Embedding>(layer.compute()), {inputs[0].tensor, tokens})[0];
    const TensorId sum = layer.op(std::make_shared<PositionEmbedding>(true), {rows, positions})[0];
    return layer.output(sum, mask_zero ? mask_of_tokens(layer, inputs[0]) : no_tensor);
  }
  MaskUse mask_use() const override { return MaskUse::own; }
  std::int64_t tokens() const override { return vocabulary_size; }
};

}  // namespace

Section position_embedding() {
  using O = PositionEmbeddingOptions;
  return layer_keys<O>("position_embedding",
                       "A learned vector for each position of a sequence (positions, channels), whatever its values "
                       "are. An `add` layer adds them to the sequence.")
      .required("sequence_length", &O::sequence_length,
                "Number of vectors: the largest number of positions; auto: the number of positions of the input.",
                between(1, max_channels))
      .key("initializer", &O::initializer, "Initial values of the vectors.");
}

Section token_and_position_embedding() {
  using O = TokenAndPositionEmbeddingOptions;
  return layer_keys<O>("token_and_position_embedding",
                       "Replaces each token of a sequence by the sum of two learned vectors: one for the token, and "
                       "one for its position. An input of the model that this layer reads holds tokens.")
      .required("vocabulary_size", &O::vocabulary_size, "Size of the vocabulary: all tokens are below it.",
                between(1, max_channels))
      .required("sequence_length", &O::sequence_length, "The largest number of positions.", between(1, max_channels))
      .required("embedding_dim", &O::embedding_dim, "Length of the vectors.", between(1, max_channels))
      .key("embeddings_initializer", &O::embeddings_initializer, "Initial values of the vectors.")
      .key("mask_zero", &O::mask_zero, mask_zero_meaning);
}

}  // namespace trainctl
