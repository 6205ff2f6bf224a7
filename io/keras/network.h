// A network saved by Keras as a list of uses of layers, in an order in which they can be computed.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/base/json_fwd.h"
#include "core/spec/reader.h"
#include "core/tensor/shape.h"

namespace trainctl {

// One use of a layer. Networks inside of others are dissolved: their layers are called "inner.dense".
struct LayerUse {
  std::string name;
  const Json* layer = nullptr;    // as saved: "class_name", "config"; null for an input of the network
  std::vector<std::size_t> from;  // the uses whose outputs it takes, all of them before it
  Shape sample = {};              // of an input; a dimension that Keras leaves open is stand_in
};

// The size that stands for an open dimension while shapes are checked: a power of two, as networks halve images.
inline constexpr std::int64_t stand_in = 256;

struct KerasNetwork {
  std::vector<LayerUse> uses;  // only those that outputs depend on
  std::vector<std::size_t> inputs, outputs;
  std::vector<std::string> inner;  // paths of the networks inside, "inner" before "inner/deeper"
};

// `saved` is what read_saved_model() gave and must outlive the result. What trainctl cannot compute, but for the layers
// themselves, is reported. Throws Json::exception where the JSON is not as Keras writes it, and Error{data} where
// layers wait for each other or are more than 5000.
KerasNetwork read_network(const Json& saved, const std::string& path, Reader& reader);

}  // namespace trainctl
