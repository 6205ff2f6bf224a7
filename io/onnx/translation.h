// The translation of a graph into ONNX while it is made: the values of its tensors so far, and one op after another.
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

// Where a tensor's channels are among its dimensions: the last ones, as trainctl has them, or those behind the samples,
// as ONNX has them for images. Tensors of one or two dimensions have both at once.
enum class Channels { last, first };

// A parameter or running statistic, in logical layout.
struct OnnxWeights {
  std::string name;
  Shape shape;
  std::span<const float> values;
};

class OnnxTranslation {
 public:
  // `weights` are whole and all of the graph's; they are stored as `dtype`, float32 or bfloat16, and computed with in
  // float32. The arguments must outlive the object.
  OnnxTranslation(const Graph& graph, std::span<const NamedTensor> weights, DType dtype);

  const Graph& graph() const { return graph_; }
  // The op that gives a tensor.
  const Op& producer(TensorId id) const;
  OnnxWeights weights(TensorId id) const;

  // A name that no other value has: this one, or this one with a number behind it.
  std::string unused(const std::string& name);
  std::string add_constant(const std::string& name, const TensorType& type, std::string bytes);
  // A constant of this name out of weights, as a float32 value. Names that come again are the same weights.
  std::string add_weights(const std::string& name, const Shape& shape, std::span<const float> values);

  // The value of a tensor with its channels in this place; a transposition where it is only there otherwise.
  std::string value(TensorId id, Channels channels);
  void set_value(TensorId id, Channels channels, const std::string& name);
  bool has_value(TensorId id, Channels channels) const;

  OnnxModel model;

 private:
  const Graph& graph_;
  const std::map<std::string_view, const NamedTensor*> weights_;
  const DType dtype_;
  std::map<TensorId, const Op*> producers_;
  std::map<TensorId, std::array<std::string, 2>> values_;  // by Channels; "" where it is not there
  std::map<std::string, std::string> of_weights_;          // values by the names that add_weights() was given
  std::set<std::string> used_;
};

// Elements in another order of dimensions: dimension k of the result is dimension order[k] of `shape`.
std::vector<float> permuted(std::span<const float> values, const Shape& shape, const std::vector<std::int64_t>& order);

}  // namespace trainctl
