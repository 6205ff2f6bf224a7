// How other programs lay out a tensor of a network.
#pragma once

#include <string>
#include <vector>

#include "core/tensor/shape.h"

namespace trainctl {

struct Graph;

enum class WeightsLayout { trainctl, pytorch, keras };

// A parameter or running statistic of a network.
struct WantedTensor {
  std::string name;  // "conv1/kernel"
  Shape shape;       // in logical layout
  // Where its first dimension counts the values of a flattened image: that image (height, width, channels). PyTorch
  // flattens images with the channels first. Empty: nothing was flattened.
  Shape image = {};
  // Of a tensor of a recurrent layer: its gates, 4 of lstm, 3 of gru. PyTorch has gru's first two in another order.
  std::int64_t gates = 0;

  std::string layer() const { return name.substr(0, name.rfind('/')); }
  std::string leaf() const { return name.substr(name.rfind('/') + 1); }
};

// All of a network, bytewise by name. `graph`: one of evaluation.
std::vector<WantedTensor> wanted_tensors(const Graph& graph);

// The shape of the tensor in a file of this layout.
Shape stored_shape(const WantedTensor& tensor, WeightsLayout layout);

// Whether a stored tensor of this shape holds the same values: stored_shape(), or the same but for dimensions that the
// layouts of some layers merge or split.
bool fits(const WantedTensor& tensor, const Shape& stored, WeightsLayout layout);

// Writes the values in logical layout to `to`.
void to_logical(const WantedTensor& tensor, WeightsLayout layout, const float* stored, float* to);

}  // namespace trainctl
