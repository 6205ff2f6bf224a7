// Converts trainctl's tensors to those of Keras' layers, in the order in which a layer creates them.
#include "io/keras/layer_weights.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/exec/interfaces/snapshot.h"
#include "core/graph/graph.h"
#include "core/graph/ops/images/convolution.h"

namespace trainctl {
namespace {

// Returns Keras' shape (height, width, channels, multiplier), whose elements are in the same order as in (height,
// width, 1, channels * multiplier).
Shape depthwise_shape(const Graph& graph, TensorId kernel) {
  const Shape& shape = graph.tensor(kernel).type.shape;
  for (const Op& op : graph.ops) {
    const auto* convolution = op.get_if<Conv2d>();
    if (convolution == nullptr || op.inputs[1] != kernel) continue;
    return {shape[0], shape[1], convolution->groups, shape[3] / convolution->groups};
  }
  return shape;
}

// Adds a list of names as an attribute, or as several numbered attributes if it is too long for one.
void add_names(Hdf5Group& group, const std::string& attribute, const std::vector<std::string>& names) {
  constexpr std::size_t max_bytes = 60'000;
  std::size_t longest = 1;
  for (const std::string& name : names) longest = std::max(longest, name.size());
  const std::size_t names_per_attribute = max_bytes / longest;
  if (names.size() <= names_per_attribute) {
    group.names[attribute] = names;
    return;
  }
  for (std::size_t first = 0; first < names.size(); first += names_per_attribute) {
    const auto begin = names.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = begin + static_cast<std::ptrdiff_t>(std::min(names_per_attribute, names.size() - first));
    group.names[attribute + std::to_string(first / names_per_attribute)] = {begin, end};
  }
}

}  // namespace

KerasLayerWeights::KerasLayerWeights(const Graph& graph, std::span<const NamedTensor> weights) {
  const auto stored = by_name(weights);
  std::map<std::string, std::string> paths;  // key: a layer's name in Keras; value: its path
  std::vector<std::string> layers;
  for (std::size_t id = 0; id < graph.tensors.size(); ++id) {
    const Tensor& tensor = graph.tensors[id];
    if (tensor.role != Role::parameter && tensor.role != Role::statistic) continue;
    const std::string path = tensor.name.substr(0, tensor.name.rfind('/'));
    const std::string leaf = tensor.name.substr(path.size() + 1);
    std::string layer = path;
    std::replace(layer.begin(), layer.end(), '/', '_');
    const auto [known, is_new] = paths.emplace(layer, path);
    if (is_new) layers.push_back(layer);
    if (known->second != path) {
      throw Error(ErrorKind::config, tensor.location,
                  format("layers '{}' and '{}' would both be called '{}' in a Keras file", known->second, path, layer),
                  "export the weights as safetensors");
    }
    const auto found = stored.find(tensor.name);
    require(found != stored.end(), "no weights for " + tensor.name);
    const float* values = found->second->view.as<const float>();
    Hdf5Group& group = root_.groups[layer];
    if (leaf == "recurrent_bias") {  // the second row of the bias of Keras' GRU
      Hdf5DataSet& bias = group.data_sets.at("bias");
      const std::int64_t count = bias.shape.count();
      std::vector<float>& rows = memory_.emplace_back(bias.values, bias.values + count);
      rows.insert(rows.end(), values, values + count);
      bias = {Shape{2, count}, rows.data()};
      continue;
    }
    Shape shape = tensor.type.shape;
    if (leaf == "depthwise_kernel") shape = depthwise_shape(graph, static_cast<TensorId>(id));
    if (leaf == "gamma") shape = {shape.back()};  // (1, channels) in layer_scale
    group.data_sets[leaf] = {shape, values};
    group.names["weight_names"].push_back(leaf);
  }
  add_names(root_, "layer_names", layers);
}

}  // namespace trainctl
