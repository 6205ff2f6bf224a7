// segment_embedding: adds a learned vector for the segment of each position, parameter embeddings (num_segments,
// channels).
#include "core/base/format.h"
#include "core/graph/ops/elementwise/activations.h"
#include "core/graph/ops/embedding.h"
#include "core/graph/ops/position_embedding.h"
#include "core/graph/ops/reshaping/shaping.h"
#include "core/layers/images.h"
#include "core/layers/initializers.h"
#include "core/layers/layer.h"
#include "core/layers/table.h"

namespace trainctl {
namespace {

struct SegmentEmbeddingOptions final : LayerOptions {
  Reference from;
  std::optional<Reference> segments;
  std::int64_t num_segments = 2;
  InitializerChoice embeddings_initializer{"uniform"};

  std::vector<Reference> references() const override {
    std::vector<Reference> all;
    if (!from.name.empty()) all.push_back(from);
    if (segments) all.push_back(*segments);
    return all;
  }
  bool reads_numbers(std::size_t input) const override { return segments && input == 1; }
  MaskUse mask_use() const override { return MaskUse::keeps; }

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    if (segments && inputs.size() != 2) {
      return layer.error("`segments` needs `from`, with the name of the layer whose output the vectors are added to",
                         inputs[0]);
    }
    if (!is_sequence(layer, inputs[0])) return {};
    const TensorId x = inputs[0].tensor;
    const Shape shape = layer.shape(inputs[0]), table{num_segments, shape[1]};
    const TensorId vectors =
        layer.parameter("embeddings", table, make_initializer(embeddings_initializer, table), true);
    if (!segments) return layer.output(add_first(layer, inputs[0], vectors));
    if (!holds_tokens(layer, inputs[1])) return {};
    if (layer.shape(inputs[1]) != Shape{shape[0]}) {
      return layer.error(format("segments {} are not one number for each of the {} positions",
                                to_string(layer.shape(inputs[1])), shape[0]),
                         inputs[1]);
    }
    const auto lookup = std::make_shared<Embedding>(layer.compute());
    const TensorId rows = layer.op(lookup, {inputs[1].tensor, vectors})[0];
    return layer.output(layer.op(std::make_shared<Add>(), {x, rows})[0]);
  }

 private:
  // Adds the first row of the table to all positions: each position becomes a sequence of one position.
  static TensorId add_first(Layer& layer, const Feature& x, TensorId table) {
    const Shape whole = layer.type(x).shape, single{whole[0] * whole[1], 1, whole[2]};
    const TensorId apart = layer.op(std::make_shared<Reshape>(single), {x.tensor})[0];
    const TensorId sum = layer.op(std::make_shared<PositionEmbedding>(true), {apart, table})[0];
    return layer.op(std::make_shared<Reshape>(whole), {sum})[0];
  }
};

}  // namespace

Section segment_embedding() {
  using O = SegmentEmbeddingOptions;
  return named_layer_keys<O>("segment_embedding",
                             "Adds to each position of a sequence (positions, channels) a learned vector of its "
                             "segment: BERT's token types, which tell a first text from a second one.")
      .key("from", &O::from, "The layer whose output is the sequence; absent: the previous layer.")
      .key("segments", &O::segments,
           "An input of the model with the number of each position's segment, below num_segments; none: all positions "
           "are in segment 0.")
      .key("num_segments", &O::num_segments, "Number of segments.", between(1, max_channels))
      .key("embeddings_initializer", &O::embeddings_initializer, "Initial values of the vectors.");
}

}  // namespace trainctl
