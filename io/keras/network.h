// Reads a network saved by Keras as a list of uses of layers, in an order in which they can be computed.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json_fwd.h"
#include "core/spec/reader.h"
#include "core/tensor/shape.h"

namespace trainctl {

// One use (call) of a layer.
struct LayerUse {
  std::string name;             // name in the config
  const Json* layer = nullptr;  // the saved object with "class_name" and "config"; null for an input of the network
  // Indices of the earlier uses whose outputs this use reads. A recurrent layer's input precedes its initial states.
  std::vector<std::size_t> from;
  Shape sample = {};     // shape of a sample; set for inputs only
  bool is_open = false;  // whether it is an input with open dimensions, which are assumed_size in `sample`
  // For an operation: its arguments in their order (a number, or empty for a tensor), and an argument of another kind.
  std::vector<std::optional<double>> operands = {};
  std::string other_argument = {};
  bool use_causal_mask = false;  // of an attention layer
  // "hidden_state" or "cell_state": not a use of its own, but this further output of the use `from[0]`, whose name it
  // has; `layer` is null. Other uses have "".
  std::string state = {};
};

// The size of open dimensions while shapes are checked: a power of two, since networks halve images.
inline constexpr std::int64_t assumed_size = 256;

// A layer that has another name in the config than in the network. The layers of a nested network are listed like those
// of the outer network and are called "inner.dense"; characters that a config does not allow in names become '_'.
struct RenamedLayer {
  std::string name;   // name in the config
  std::string keras;  // name in files of weights: "outer/inner/dense"
};

struct KerasNetwork {
  std::vector<LayerUse> uses;  // only uses that outputs depend on
  std::vector<std::size_t> inputs, outputs;
  std::vector<RenamedLayer> renamed;
  std::vector<std::string> left_out;                     // layers that do nothing in prediction, with their classes
  std::vector<std::shared_ptr<const Json>> made_layers;  // JSON of layers that replace a layer of the network
};

// `saved` is the result of read_saved_model() and must outlive the returned network. `open_shapes` are shapes of
// samples for the inputs that leave dimensions open, in order; further such inputs get assumed_size. Reports structures
// that trainctl cannot compute; the layers themselves are not checked. Throws Json::exception if the JSON is not as
// Keras writes it, and Error{data} if layers depend on each other in a cycle or there are more than 5000 layers.
KerasNetwork read_network(const Json& saved, const std::vector<Shape>& open_shapes, const std::string& path,
                          Reader& reader);

}  // namespace trainctl
