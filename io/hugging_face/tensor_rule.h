// How a tensor is stored in a Hugging Face folder, and conversions of its values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/tensor/shape.h"

namespace trainctl {

// How the values of a tensor are stored.
enum class StoredLayout {
  same,         // as in the network
  transposed,   // a matrix (outputs, inputs), which is (inputs, outputs) in the network
  convolution,  // (outputs, inputs, height, width), which is (height, width, inputs, outputs) in the network
  batched,      // with a first dimension of 1, which the network does not have
};

// A tensor of a folder, and the tensors of the preset's network that it holds.
struct TensorRule {
  std::string stored;  // its name in the folder: "model.layers.0.mlp.up_proj.weight"
  Shape shape;         // its shape in the folder
  StoredLayout layout = StoredLayout::same;
  std::vector<std::string> parts;  // names in the network; several have equal shares of the columns, in this order

  // The shape of a part in the network.
  Shape part_shape() const;
  // Writes part number `part` of the values `stored` to `to`.
  void to_network(std::size_t part, const float* stored, float* to) const;
  // Writes the values of the parts to `to` as they are stored.
  void to_stored(std::span<const float* const> values, float* to) const;
};

// These functions append the rules of a layer's parameters. `stored` is the layer's name in the folder, `layer` its
// name in the network; a vector is named with the parameter. The kernel of a dense layer is stored as (outputs,
// inputs).
void add_vector(const std::string& stored, std::int64_t values, const std::string& parameter,
                std::vector<TensorRule>& rules);
void add_dense(const std::string& stored, std::int64_t outputs, std::int64_t inputs, const std::string& layer,
               std::vector<TensorRule>& rules);
void add_norm(const std::string& stored, std::int64_t width, const std::string& layer, std::vector<TensorRule>& rules);

}  // namespace trainctl
