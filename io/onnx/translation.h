// The state of the translation of a graph to ONNX: the model so far, and the values of the graph's tensors.
#pragma once

#include <array>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "io/onnx/model.h"

namespace trainctl {

struct NamedTensor;

// The position of the channels among a tensor's dimensions: the last dimension, as in trainctl, or the one after the
// samples, as in ONNX for images. For tensors of one or two dimensions both are the same.
enum class Channels { last, first };

// A parameter or running statistic, in logical layout.
struct OnnxWeights {
  std::string name;
  Shape shape;
  std::span<const float> values;
};

class OnnxTranslation {
 public:
  // `weights` are all weights of the graph as whole tensors; they are stored as `dtype`, float32 or bfloat16, and used
  // as float32. The arguments must outlive the object.
  OnnxTranslation(const Graph& graph, std::span<const NamedTensor> weights, DType dtype);

  const Graph& graph() const { return graph_; }
  // Returns the op that produces a tensor.
  const Op& producer(TensorId id) const;
  OnnxWeights weights(TensorId id) const;

  // Returns a name that no other value has: `name`, or `name` with a number appended.
  std::string unused(const std::string& name);
  std::string add_constant(const std::string& name, const TensorType& type, std::string bytes);
  // Adds weights as a constant and returns their float32 value. The same name must always mean the same weights, which
  // are added once.
  std::string add_weights(const std::string& name, const Shape& shape, std::span<const float> values);

  // Returns the value of a tensor with its channels in this position; adds a transposition if the value exists only in
  // the other position.
  std::string value(TensorId id, Channels channels);
  void set_value(TensorId id, Channels channels, const std::string& name);
  bool has_value(TensorId id, Channels channels) const;

  OnnxModel model;

 private:
  const Graph& graph_;
  const std::map<std::string_view, const NamedTensor*> weights_;
  const DType dtype_;
  std::map<TensorId, const Op*> producers_;
  std::map<TensorId, std::array<std::string, 2>> values_;  // names, indexed by Channels; "" if there is no value
  std::map<std::string, std::string> weights_values_;      // key: name of the weights
  std::set<std::string> used_;
};

// Returns the elements in another order of dimensions: dimension k of the result is dimension order[k] of `shape`.
std::vector<float> permuted(std::span<const float> values, const Shape& shape, const std::vector<std::int64_t>& order);

}  // namespace trainctl
