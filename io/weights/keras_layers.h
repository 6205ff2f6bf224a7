// What the JSON of a network that Keras saved says about the weights of its layers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/json_fwd.h"

namespace trainctl {

// Whether a class of Keras' is a network whose JSON lists its layers.
bool is_keras_network(const std::string& class_name);

// The layers of a network in their order, without its inputs and without operations, which Keras 3 lists among them.
// Throws Json::exception if the JSON is not as Keras writes it.
std::vector<const Json*> layers_of(const Json& network);

// A layer's name and class. Throw Json::exception.
std::string layer_name(const Json& layer);
std::string layer_class(const Json& layer);

// What layers of several networks have in common that are one layer of Keras', which shares its weights; empty if the
// layer stands in one network. Throws Json::exception.
std::string shared_layer(const Json& layer);

// "Conv2DTranspose" as "conv2d_transpose": how Keras calls a layer of a class, with a number from the second one on.
std::string usual_name(const std::string& class_name);

// The names of the weights that layers of a class may have, in their order, by the class's usual name; none if the
// class is unknown.
std::vector<std::string> weights_of_class(const std::string& usual);

// A weight of a layer.
struct LayerVariable {
  std::string layer;  // its path: "outer/inner/dense"
  std::string leaf;   // "kernel"; of a layer inside another, such as one direction of a Bidirectional, "forward/kernel"
  bool is_trained = true;   // false for running statistics
  std::string shared = {};  // shared_layer()

  std::string name() const { return layer + "/" + leaf; }
};

// The weights of a layer that is no network, in the order in which Keras creates them; nothing if the class is unknown.
std::optional<std::vector<LayerVariable>> layer_variables(const Json& layer, const std::string& path);

// Likewise, of a layer that may be a network, in the order of the older .h5 files: trainable weights first. Keras 3 and
// the versions before it do not agree on networks that are frozen.
std::optional<std::vector<LayerVariable>> variables_in_h5(const Json& layer, bool is_keras3);

}  // namespace trainctl
