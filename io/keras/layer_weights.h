// Arranges the weights of a network as in Keras' .h5 files, which are loaded by the names of layers.
#pragma once

#include <list>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/layers/model/layer_line.h"
#include "io/weights/hdf5_writer.h"

namespace trainctl {

struct Graph;
struct NamedTensor;

// The file's contents for `model.load_weights(file, by_name=True)` of a Keras network with the same layers: a group for
// each layer with its weights in Keras' order and shapes. A layer in a block is called "block_layer", since names of
// Keras layers have no '/'. The weights of layers inside a layer, such as those of attention, belong to the outer
// layer, as in Keras.
class KerasLayerWeights {
 public:
  // `layers` and `blocks` as in BuiltModel; `weights` are all weights of the graph as whole tensors, and must outlive
  // the object. Throws Error{config} if two layers would have the same name, and for layers whose weights Keras has in
  // another order.
  KerasLayerWeights(const Graph& graph, std::span<const LayerLine> layers, const std::set<std::string>& blocks,
                    std::span<const NamedTensor> weights);
  KerasLayerWeights(const KerasLayerWeights&) = delete;
  KerasLayerWeights& operator=(const KerasLayerWeights&) = delete;

  const Hdf5Group& root() const { return root_; }

 private:
  Hdf5Group root_;
  std::list<std::vector<float>> memory_;  // values of tensors that are joined from several
};

}  // namespace trainctl
