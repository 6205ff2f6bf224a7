// Converts tensors between the layouts of other programs and trainctl's layout.
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
  // The shape of the image (height, width, channels), or of the volume with its depth first, if the first dimension
  // counts the values of a flattened image or volume; otherwise empty. It is needed since PyTorch flattens with the
  // channels first.
  Shape image = {};
  // Number of gates if it is a tensor of a recurrent layer: 4 for lstm, 3 for gru. The first two gates of gru are in
  // another order in PyTorch.
  std::int64_t gates = 0;

  std::string layer() const { return name.substr(0, name.rfind('/')); }
  std::string leaf() const { return name.substr(name.rfind('/') + 1); }
};

// Returns all tensors of a network in bytewise order of names. `graph` is its evaluation graph.
std::vector<WantedTensor> wanted_tensors(const Graph& graph);

// Returns the shape of the tensor in a file of this layout.
Shape stored_shape(const WantedTensor& tensor, WeightsLayout layout);

// One of several equal parts of a stored tensor along its first dimension. PyTorch stores the kernels of an attention's
// queries, keys and values as the three parts of one tensor.
struct StoredPart {
  std::int64_t index = 0;
  std::int64_t count = 1;  // number of parts; 1: the whole tensor
};

// Whether a stored tensor of this shape can hold the values: the shape is stored_shape(), or differs only in dimensions
// that some layers merge or split, or in dimensions of size 1. If the tensor is only a part of the stored tensor,
// `part` says which one.
bool fits(const WantedTensor& tensor, Shape stored, WeightsLayout layout, const StoredPart& part = {});

// Writes the values in logical layout to `to`.
void to_logical(const WantedTensor& tensor, WeightsLayout layout, const float* stored, float* to);

}  // namespace trainctl
