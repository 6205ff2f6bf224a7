// Converts trainctl's tensors to those of Keras' layers, in the order in which a layer creates them.
#include "io/keras/layer_weights.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/exec/interfaces/snapshot.h"
#include "core/graph/graph.h"
#include "core/graph/ops/attention.h"
#include "core/graph/ops/images/convolution.h"

namespace trainctl {
namespace {

// Returns Keras' shape (height, width, channels, multiplier), whose elements are in the same order as in (height,
// width, 1, channels * multiplier); of sequences (length, channels, multiplier).
Shape depthwise_shape(const Graph& graph, TensorId kernel) {
  const Shape& shape = graph.tensor(kernel).type.shape;
  for (const Op& op : graph.ops) {
    const auto* convolution = op.get_if<Conv2d>();
    if (convolution == nullptr || op.inputs[1] != kernel) continue;
    std::vector<std::int64_t> sizes(shape.sizes().begin(), shape.sizes().end() - 2);
    sizes.insert(sizes.end(), {convolution->groups, shape.back() / convolution->groups});
    return Shape(std::move(sizes));
  }
  return shape;
}

// Returns Keras' shape of a weight of an attention layer, whose heads are a dimension of their own; for other layers
// the shape itself. `inner`: the weight's name within the layer, such as "query/kernel".
Shape shape_with_heads(const Graph& graph, const std::string& layer, const std::string& inner, const Shape& shape) {
  const auto is_attention = [&](const Op& op) { return op.name == layer && op.get_if<Attention>() != nullptr; };
  const auto op = std::ranges::find_if(graph.ops, is_attention);
  const std::string projection = inner.substr(0, inner.find('/'));
  if (op == graph.ops.end() || inner == "attention_output/bias") return shape;
  const AttentionAttributes& a = op->get_if<Attention>()->a;
  const bool of_values = projection == "value" || projection == "attention_output";
  const std::int64_t size = of_values ? a.value_size : a.head_size;
  if (projection == "attention_output") return {shape[0] / size, size, shape[1]};
  if (projection != "query" && projection != "key" && projection != "value") return shape;
  return shape.with_back(shape.back() / size).with_appended(size);
}

// Returns the path of the layer that has the tensor in Keras: the first part of the tensor's path below all blocks.
std::string owner_of(const std::string& tensor, const std::set<std::string>& blocks) {
  std::size_t begin = 0;  // of the part below the innermost block so far
  for (std::size_t slash = tensor.find('/'); slash != std::string::npos; slash = tensor.find('/', slash + 1)) {
    if (blocks.contains(tensor.substr(0, slash))) begin = slash + 1;
  }
  return tensor.substr(0, tensor.find('/', begin));
}

// Refuses a layer that contains layers, if Keras has their weights in another order.
void check_order(const std::string& path, std::span<const LayerLine> layers, const Tensor& tensor) {
  static constexpr std::array kept{"bidirectional", "time_distributed", "multi_head_attention", "group_query_attention",
                                   "spectral_normalization"};
  const auto line = std::ranges::find(layers, path, &LayerLine::name);
  if (line == layers.end() || std::ranges::find(kept, line->kind) != kept.end()) return;
  throw Error(ErrorKind::config, tensor.location,
              format("the weights of {} '{}' have another order in Keras", line->kind, path),
              "export the weights as safetensors");
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

KerasLayerWeights::KerasLayerWeights(const Graph& graph, std::span<const LayerLine> lines,
                                     const std::set<std::string>& blocks, std::span<const NamedTensor> weights) {
  const auto stored = by_name(weights);
  std::map<std::string, std::string> paths;  // key: a layer's name in Keras; value: its path
  std::vector<std::string> layers;
  for (std::size_t id = 0; id < graph.tensors.size(); ++id) {
    const Tensor& tensor = graph.tensors[id];
    if (tensor.role != Role::parameter && tensor.role != Role::statistic) continue;
    const std::string path = owner_of(tensor.name, blocks);
    const std::string leaf = tensor.name.substr(path.size() + 1);
    const bool is_inner = leaf.find('/') != std::string::npos;
    if (is_inner) check_order(path, lines, tensor);
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
    Hdf5Group* inner = &group;  // of the names "query/kernel"
    std::string name = leaf;
    for (std::size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/')) {
      inner = &inner->groups[name.substr(0, slash)];
      name = name.substr(slash + 1);
    }
    if (name == "recurrent_bias") {  // the second row of the bias of Keras' GRU
      Hdf5DataSet& bias = inner->data_sets.at("bias");
      const std::int64_t count = bias.shape.count();
      std::vector<float>& rows = memory_.emplace_back(bias.values, bias.values + count);
      rows.insert(rows.end(), values, values + count);
      bias = {Shape{2, count}, rows.data()};
      continue;
    }
    Shape shape = tensor.type.shape;
    if (name == "depthwise_kernel") shape = depthwise_shape(graph, static_cast<TensorId>(id));
    if (is_inner) shape = shape_with_heads(graph, path, leaf, shape);
    const bool is_number = leaf == "scale" || leaf == "concat_score_weight";  // (1, 1) in attention
    if (is_number && shape.rank() == 2) shape = Shape();
    if (leaf == "gamma" && !is_inner) shape = {shape.back()};  // (1, channels) in layer_scale
    inner->data_sets[name] = {shape, values};
    group.names["weight_names"].push_back(leaf);
  }
  add_names(root_, "layer_names", layers);
}

}  // namespace trainctl
