// Rotary position embedding as options, for the layer rotary_embedding and for attention layers.
#pragma once

#include "core/graph/ops/rotary.h"
#include "core/layers/layer.h"

namespace trainctl {

template <>
struct EnumNames<RotaryScaling> {
  static constexpr EnumName<RotaryScaling> names[] = {
      {RotaryScaling::none, "none"}, {RotaryScaling::linear, "linear"}, {RotaryScaling::llama3, "llama3"}};
};

struct RotaryOptions {
  double max_wavelength = 10'000;
  Auto<std::int64_t> rotary_dim;
  bool interleaved = false;
  RotaryScaling scaling = RotaryScaling::none;
  double scaling_factor = 1;
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  std::int64_t original_max_position_embeddings = 8192;
};

// Reports an error if the options contradict each other.
void check_rotary(const RotaryOptions& options, const Node& node, Reader& reader);

// Adds the keys of RotaryOptions to a section of options O, which derives from it.
template <class O>
Keys<O> rotary_keys(Keys<O>&& keys) {
  return std::move(keys)
      .key("max_wavelength", &O::max_wavelength,
           "Base of the angles: pair i of d rotated values turns by max_wavelength^(-2 i / d) radians for each "
           "position. Other programs call it theta.",
           more_than(1))
      .key("rotary_dim", &O::rotary_dim,
           "Number of values of each head that are rotated, from the first on; auto: all.", at_least(2))
      .key(
          "interleaved", &O::interleaved,
          "Whether neighbouring values form the pairs, as in GPT-J; otherwise value i and value i + rotary_dim / 2, as "
          "in Llama.")
      .key("scaling", &O::scaling,
           "How the angles are changed for texts that are longer than those of the pretraining. linear divides all "
           "angles by scaling_factor; llama3 keeps fast rotations, and divides slow ones, as in Llama 3.1.")
      .key("scaling_factor", &O::scaling_factor, "Divisor of the angles, for linear and llama3.", at_least(1))
      .key("low_freq_factor", &O::low_freq_factor,
           "llama3 divides the angles of pairs that turn at most this often within original_max_position_embeddings.",
           more_than(0))
      .key("high_freq_factor", &O::high_freq_factor,
           "llama3 keeps the angles of pairs that turn at least this often within original_max_position_embeddings. It "
           "must be above low_freq_factor.",
           more_than(0))
      .key("original_max_position_embeddings", &O::original_max_position_embeddings,
           "Longest text of the pretraining, for llama3.", at_least(1))
      .check(check_rotary);
}

// Returns x [N, T, heads * head_size] of the layer with rotated heads, in place where that is possible. With
// `documents`, the document numbers int32 [N, T], positions count from the beginning of each document. Returns
// no_tensor after reporting an error if heads of this size cannot be rotated.
TensorId rotate_heads(Layer& layer, const RotaryOptions& options, const Feature& x, std::int64_t heads,
                      TensorId documents = no_tensor);

}  // namespace trainctl
