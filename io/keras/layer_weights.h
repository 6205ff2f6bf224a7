// The weights of a network in the layout of Keras' .h5 files, whose layers are found by their names.
#pragma once

#include <list>
#include <span>
#include <vector>

#include "io/weights/hdf5_writer.h"

namespace trainctl {

struct Graph;
struct NamedTensor;

// For `model.load_weights(file, by_name=True)` of a network with the same layers: a group for each layer, its weights
// in Keras' order and shapes. A layer in a block is called "block_layer", since no layer of Keras has a '/' in its
// name.
class KerasLayerWeights {
 public:
  // `weights` are whole and all of the graph's, and must outlive the object. Throws Error{config} where two layers
  // would have one name.
  KerasLayerWeights(const Graph& graph, std::span<const NamedTensor> weights);
  KerasLayerWeights(const KerasLayerWeights&) = delete;
  KerasLayerWeights& operator=(const KerasLayerWeights&) = delete;

  const Hdf5Group& root() const { return root_; }

 private:
  Hdf5Group root_;
  std::list<std::vector<float>> memory_;  // of tensors that are put together
};

}  // namespace trainctl
