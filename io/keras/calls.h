// Parses the calls of layers in a saved Keras network: the tensors that each call reads.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json_fwd.h"

namespace trainctl {

// A tensor of a network, as Keras refers to it: the layer, the number of the call (node), and the number of the call's
// output.
struct LayerOutput {
  std::string layer;
  std::size_t node = 0, number = 0;
};

// The arguments of one call of a layer.
struct CallArguments {
  std::vector<LayerOutput> tensors;
  std::vector<std::optional<double>> operands;  // the arguments in their order: a number, or empty for a tensor
  std::vector<LayerOutput> masks;               // the tensors of the arguments `mask`, `query_mask` and so on
  std::optional<bool> use_causal_mask;
  std::string other;  // an argument of another kind that has an effect; "" if there is none
};

// Parses an item of a layer's `inbound_nodes`, as Keras 2 or 3 writes it. Throws Json::exception for other formats.
CallArguments arguments_of(const Json& node);

// Parses `input_layers` or `output_layers`: one tensor, or lists or maps of tensors. Throws Json::exception for
// anything else.
std::vector<LayerOutput> outputs_in(const Json& list);

}  // namespace trainctl
