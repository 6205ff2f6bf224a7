// rotary_embedding: rotates the values of each head by angles that grow with the position.
#include "core/layers/rotary_embedding.h"

#include "core/base/format.h"
#include "core/base/table.h"
#include "core/layers/images.h"
#include "core/layers/table.h"

namespace trainctl {
namespace {

struct RotaryEmbeddingOptions final : ChainedLayer, RotaryOptions {
  std::int64_t num_heads = 1;

  MaskUse mask_use() const override { return MaskUse::keeps; }

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    if (!is_sequence(layer, inputs[0])) return {};
    const TensorId rotated = rotate_heads(layer, *this, inputs[0], num_heads);
    return rotated == no_tensor ? Feature{} : layer.output(rotated);
  }
};

}  // namespace

void check_rotary(const RotaryOptions& options, const Node& node, Reader& reader) {
  if (options.rotary_dim.or_else(2) % 2 != 0) {
    reader.error(node.find("rotary_dim")->location,
                 format("rotary_dim {} is odd, but values are rotated in pairs", *options.rotary_dim.given));
  }
  if (options.scaling == RotaryScaling::none && options.scaling_factor != 1) {
    reader.error(node.find("scaling_factor")->location,
                 "scaling_factor has no effect without scaling: linear or llama3");
  }
  if (options.scaling == RotaryScaling::llama3 && options.high_freq_factor <= options.low_freq_factor) {
    reader.error(node.location, format("high_freq_factor {} is not above low_freq_factor {}", options.high_freq_factor,
                                       options.low_freq_factor));
  }
}

TensorId rotate_heads(Layer& layer, const RotaryOptions& options, const Feature& x, std::int64_t heads,
                      TensorId documents) {
  const std::int64_t columns = layer.shape(x).back();
  if (columns % heads != 0) {
    layer.error(format("{} heads do not divide the {} values of a position", heads, columns), x);
    return no_tensor;
  }
  const std::int64_t head_size = columns / heads, width = options.rotary_dim.or_else(head_size);
  if (width > head_size || width % 2 != 0) {
    layer.error(
        format("{} of heads of {} cannot be rotated in pairs", counted(width, "value"), counted(head_size, "value")),
        x);
    return no_tensor;
  }
  const RotaryAttributes attributes{.head_size = head_size,
                                    .width = width,
                                    .base = options.max_wavelength,
                                    .pairs = options.interleaved ? RotaryPairs::neighbours : RotaryPairs::halves,
                                    .scaling = options.scaling,
                                    .factor = options.scaling_factor,
                                    .low_frequency_factor = options.low_freq_factor,
                                    .high_frequency_factor = options.high_freq_factor,
                                    .original_positions = options.original_max_position_embeddings};
  std::vector<TensorId> operands{x.tensor};
  if (documents != no_tensor) operands.push_back(documents);
  return layer.op(std::make_shared<Rotary>(attributes), std::move(operands))[0];
}

Section rotary_embedding() {
  using O = RotaryEmbeddingOptions;
  return rotary_keys(
      layer_keys<O>("rotary_embedding",
                    "Rotates pairs of values of sequences (steps, num_heads * head size) by angles that grow with the "
                    "position, so that products of queries and keys depend on their distance; Su et al. (2021).")
          .key("num_heads", &O::num_heads, "Number of heads in the last dimension; each one is rotated alike.",
               between(1, max_channels)));
}

}  // namespace trainctl
