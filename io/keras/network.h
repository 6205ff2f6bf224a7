// A network saved by Keras as a list of uses of layers, in an order in which they can be computed.
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

// One use of a layer.
struct LayerUse {
  std::string name;               // in the config
  const Json* layer = nullptr;    // as saved: "class_name", "config"; null for an input of the network
  std::vector<std::size_t> from;  // the uses whose outputs it takes, all of them before it
  Shape sample = {};              // of an input
  bool is_open = false;           // an input of which Keras leaves dimensions open, which are stand_in in `sample`
  // Of an operation: its arguments in their order, numbers and, without a value, tensors; and another argument.
  std::vector<std::optional<double>> operands = {};
  std::string other_argument = {};
};

// The size that stands for an open dimension while shapes are checked: a power of two, as networks halve images.
inline constexpr std::int64_t stand_in = 256;

// A layer that has another name in the config than in the network: networks inside of others are dissolved, their
// layers are called "inner.dense", and what no name of a config may hold becomes '_'.
struct RenamedLayer {
  std::string name;   // in the config
  std::string keras;  // in files of weights: "outer/inner/dense"
};

struct KerasNetwork {
  std::vector<LayerUse> uses;  // only those that outputs depend on
  std::vector<std::size_t> inputs, outputs;
  std::vector<RenamedLayer> renamed;
  std::vector<std::string> left_out;               // layers that do nothing in prediction, with their classes
  std::vector<std::shared_ptr<const Json>> parts;  // layers of which a layer of the network is made
};

// `saved` is what read_saved_model() gave and must outlive the result. `open_shapes` are shapes of samples for the
// inputs that leave dimensions open, in their order; those that it lacks get stand_in. What trainctl cannot compute,
// but for the layers themselves, is reported. Throws Json::exception where the JSON is not as Keras writes it, and
// Error{data} where layers wait for each other or are more than 5000.
KerasNetwork read_network(const Json& saved, const std::vector<Shape>& open_shapes, const std::string& path,
                          Reader& reader);

}  // namespace trainctl
