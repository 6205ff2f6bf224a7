// What a saved network says about the calls of its layers: which tensors each takes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json_fwd.h"

namespace trainctl {

// A tensor of a network: Keras counts the calls of a layer, its nodes, and the outputs of each.
struct LayerOutput {
  std::string layer;
  std::size_t node = 0, number = 0;
};

// What one call of a layer takes.
struct CallArguments {
  std::vector<LayerOutput> tensors;
  std::vector<std::optional<double>> operands;  // the arguments in their order: numbers, and nothing for a tensor
  std::string other;                            // another argument, which has an effect
};

// An item of a layer's `inbound_nodes`, as Keras 2 or 3 writes it. Throws Json::exception where it is neither.
CallArguments arguments_of(const Json& node);

// `input_layers` or `output_layers`: one tensor, or lists or maps of them. Throws Json::exception for anything else.
std::vector<LayerOutput> outputs_in(const Json& list);

}  // namespace trainctl
