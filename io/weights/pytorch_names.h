// PyTorch's names for the tensors of layers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/layers/model/name_rules.h"
#include "io/weights/layout.h"

namespace trainctl {

// Returns the name of the module for the path of a layer: "encoder.ln" for "encoder/ln".
std::string module_of(std::string layer);

// Returns PyTorch's name for a layer's tensor; `leaf` itself if PyTorch has no such tensor.
std::string pytorch_name(const std::string& leaf);

// Returns PyTorch's name of a recurrent layer's tensor. PyTorch has two biases; the bias of our lstm is their sum.
std::string pytorch_recurrent_name(const std::string& module, std::string_view leaf);

// The names of a tensor that holds the kernels (or biases) of an attention's queries, keys and values, and the part of
// it that a layer has. torch.nn.MultiheadAttention calls it in_proj_weight, timm's Attention qkv.weight.
struct PackedNames {
  std::vector<std::string> names;
  StoredPart part;
};

// Returns no names if the layer does not compute queries, keys or values. `rules` turn the path of the attention into
// the name of its module.
PackedNames packed_names(const std::string& layer, const std::string& leaf, const std::vector<NameRule>& rules);

}  // namespace trainctl
