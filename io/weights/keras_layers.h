// Finds the weights of layers in the JSON of a network that Keras saved.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/json_fwd.h"

namespace trainctl {

// Whether a Keras class is a network whose JSON lists its layers.
bool is_keras_network(const std::string& class_name);

// Returns the layers of a network in their order, without inputs, and without operations, which Keras 3 also lists.
// Throws Json::exception if the JSON is not as Keras writes it.
std::vector<const Json*> layers_of(const Json& network);

// Return the name and the class of a layer. Throw Json::exception if the JSON is not as Keras writes it.
std::string layer_name(const Json& layer);
std::string layer_class(const Json& layer);

// Returns an identifier of a layer that is in several networks and shares its weights. The identifier is the same in
// all these networks; it is empty if the layer is in one network. Throws Json::exception.
std::string shared_layer(const Json& layer);

// Returns the layer LSTM, GRU or SimpleRNN that computes what a layer RNN with one cell does; no value for all other
// layers, and for other cells.
std::optional<Json> layer_of_cell(const Json& layer);

// Converts "Conv2DTranspose" to "conv2d_transpose": the name that Keras gives to a layer of this class. From the second
// layer of a class on, Keras appends a number.
std::string usual_name(const std::string& class_name);

// Returns the names of all weights that layers of a class can have, in their order; `usual` is the class's
// usual_name(). Empty if the class is unknown.
std::vector<std::string> weights_of_class(const std::string& usual);

// A weight of a layer.
struct LayerVariable {
  std::string layer;        // path of the layer: "outer/inner/dense"
  std::string leaf;         // "kernel"; "forward_layer/kernel" in a direction of a Bidirectional layer
  bool is_trained = true;   // false for running statistics
  std::string shared = {};  // result of shared_layer()

  std::string name() const { return layer + "/" + leaf; }
};

// Returns the weights of a layer that is not a network, in the order in which Keras creates them; no value if the class
// is unknown.
std::optional<std::vector<LayerVariable>> layer_variables(const Json& layer, const std::string& path);

// Returns the weights of a layer that may be a network, in the order of the older .h5 files: trainable weights first.
// The order of weights in frozen networks differs between Keras 3 and earlier versions. No value if a class is unknown.
std::optional<std::vector<LayerVariable>> variables_in_h5(const Json& layer, bool is_keras3);

}  // namespace trainctl
