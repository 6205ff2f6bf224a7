// The base of all layers: options that a user writes, and their expansion into ops.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/graph/graph.h"
#include "core/layers/model/model.h"
#include "core/layers/model/reference.h"
#include "core/spec/values.h"

namespace trainctl {

// The most channels of a layer: libraries count channels in 32 bits.
inline constexpr double most_channels = 2'147'483'647;

// The output of a layer, or an input of the model. Unknown after an error in that layer; layers that take an unknown
// feature are not checked further.
struct Feature {
  TensorId tensor = no_tensor;
  std::string layer;  // path of the layer that produced it; "input" for the model's input
  SourceLocation location;

  bool known() const { return tensor != no_tensor; }
};

class Layer;

// The output number of layers that give none of the model's outputs.
inline constexpr int no_output = -1;

// Base of all layers' options.
struct LayerOptions : Options {
  Auto<std::string> name;

  // The layers whose outputs this layer takes; empty: the layer before it.
  virtual std::vector<Reference> references() const = 0;
  // Appends the layer's ops to the graph. `inputs` has at least one feature; all are known. Returns the output, or an
  // unknown feature after reporting an error.
  virtual Feature expand(Layer& layer, const std::vector<Feature>& inputs) const = 0;
  // The activation that ends the layer; null where none ends it.
  virtual const Choice* final_activation() const { return nullptr; }
  // The number of tokens, for a layer that takes whole numbers from 0 to below it; 0 for layers that take values.
  virtual std::int64_t tokens() const { return 0; }
};

// Base of layers with one input.
struct ChainedLayer : LayerOptions {
  Reference from;

  std::vector<Reference> references() const final {
    return from.name.empty() ? std::vector<Reference>{} : std::vector{from};
  }
};

// The keys that all layers share; a layer adds its own.
template <class T>
Keys<T> layer_keys(std::string kind, std::string meaning) {
  Keys<T> keys(std::move(kind), std::move(meaning));
  std::move(keys).key("name", &T::name,
                      "Prefix of its tensors' names; auto: its kind, numbered. "
                      "A name that comes again in the same list is the same layer used again, with the same "
                      "weights: its options must be equal. Its second use is called NAME@2.");
  if constexpr (std::is_base_of_v<ChainedLayer, T>) {
    std::move(keys).key("from", &T::from,
                        "The layer whose output it takes; absent: the one before. Of a layer "
                        "used several times NAME is the last use before this layer, "
                        "NAME@1, NAME@2, ... each of them.");
  } else {
    std::move(keys).required("from", &T::from, "The layers whose outputs it takes, at least two.");
  }
  return keys;
}

class Expansion;  // the expansion of the whole model (core/layers/model/expansion.h)

// One layer, or one use of a layer, while it expands: its path in the model, and its access to the graph.
class Layer {
 public:
  // `output` is the number of the model's output that the layer gives, or no_output.
  Layer(Expansion& expansion, std::string kind, std::string path, SourceLocation location, int output);

  const std::string& path() const { return path_; }
  int model_output() const { return output_; }
  bool training() const;
  // Whether the layer's weights and running statistics stay as they are.
  bool frozen() const { return frozen_; }
  std::uint64_t seed() const;
  // The shape of one sample, without the batch dimension.
  Shape shape(const Feature& feature) const;
  const TensorType& type(const Feature& feature) const;  // of the whole batch
  DType compute() const;                                 // dtype of activations
  Shape batch_of(const Shape& sample) const;

  // Reports "conv2d 'c3': <message> (from 'pool2' at 33:5)", where `cause` is the feature of 'pool2'; returns an
  // unknown feature.
  Feature error(const std::string& message, const Feature& cause) const;

  // The layer's float32 parameter `path/name`, which its first use adds. `decay`: whether weight decay may apply; false
  // for biases and normalization.
  TensorId parameter(const std::string& name, const Shape& shape, Initializer initializer, bool decay,
                     Penalty penalty = {});
  // The layer's running statistic `path/name` of shape [channels], which its first use adds and each use updates from
  // its own `batch_value`.
  TensorId statistic(const std::string& name, std::int64_t channels, float momentum, float initial,
                     TensorId batch_value);
  // Appends an op; `further` names its outputs after the first. Returns all outputs.
  std::vector<TensorId> op(std::shared_ptr<const OpDef> def, std::vector<TensorId> inputs,
                           std::vector<std::string> further = {});
  // Appends an activation, unless it is linear or the loss takes it over. Returns the result.
  TensorId activate(TensorId x, const Choice& activation);
  // The inputs of dropout: the samples' numbers and the step.
  std::vector<TensorId> dropout_inputs();
  // The feature of a tensor that this layer gives.
  Feature output(TensorId tensor) const { return {tensor, path_, location_}; }
  // Expands layers below `path` (that of this layer, or one beneath it), none of which may have a name in `taken`.
  Feature expand(const std::vector<Choice>& layers, const Feature& input, const std::string& path,
                 int output = no_output, const std::vector<std::string>& taken = {});
  // Makes the layers below `path` a block of the model (BuiltModel::blocks).
  void add_block(const std::string& path);

 private:
  friend class Expansion;

  // The layer's parameter or statistic of this name, and whether it is new. Reports a shape other than at its first
  // use.
  std::pair<TensorId, bool> weights(const std::string& name, const Shape& shape, Role role);

  Expansion& expansion_;
  std::string kind_;
  std::string path_;
  SourceLocation location_;
  int output_;
  bool frozen_;
  std::vector<TensorId> tensors_;     // outputs of its ops
  std::map<std::string, int> kinds_;  // by kind: the number of its ops
  LayerLine line_;                    // the sums over its ops and parameters so far
  bool is_other_shape_ = false;       // that its weights do not fit was reported
};

}  // namespace trainctl
