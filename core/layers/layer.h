// What every layer is: options that a user writes, and their expansion into ops.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"
#include "core/layers/model.h"
#include "core/layers/reference.h"
#include "core/spec/values.h"

namespace trainctl {

// Channels of a layer: libraries count them in 32 bits.
inline constexpr double most_channels = 2'147'483'647;

// A value on its way from layer to layer. Unknown behind a layer that has an error: what takes it is not checked
// further.
struct Feature {
  TensorId tensor = no_tensor;
  std::string layer;  // the path of the layer that produced it; "input" for the model's
  Place place;

  bool known() const { return tensor != no_tensor; }
};

class Layer;

// Of layers that give none of the model's outputs.
inline constexpr int no_output = -1;

// Base of all layers' options.
struct LayerOptions : Options {
  Auto<std::string> name;

  // The layers whose outputs it takes; none: the layer before.
  virtual std::vector<Reference> references() const = 0;
  // Appends the ops to the layer's graph. The inputs are known, and there is at least one. Returns the output, or
  // an unknown feature after reporting an error.
  virtual Feature expand(Layer& layer, const std::vector<Feature>& inputs) const = 0;
  // The activation that ends the layer; null where none does.
  virtual const Choice* final_activation() const { return nullptr; }
  // The number of tokens where it takes those, whole numbers below it; 0: it takes values.
  virtual std::int64_t tokens() const { return 0; }
};

// Base of layers with one input.
struct ChainedLayer : LayerOptions {
  Reference from;

  std::vector<Reference> references() const final {
    return from.name.empty() ? std::vector<Reference>{} : std::vector{from};
  }
};

// The keys that all layers share, to go on from.
template <class T>
Keys<T> layer_keys(std::string kind, std::string meaning) {
  Keys<T> keys(std::move(kind), std::move(meaning));
  std::move(keys).key("name", &T::name, "Prefix of its tensors' names; auto: its kind, numbered.");
  if constexpr (std::is_base_of_v<ChainedLayer, T>) {
    std::move(keys).key("from", &T::from, "The layer whose output it takes; absent: the one before.");
  } else {
    std::move(keys).required("from", &T::from, "The layers whose outputs it takes, at least two.");
  }
  return keys;
}

class Expansion;  // of the whole model (core/layers/expansion.h)

// A place in the model where a layer expands: its path, and the graph that grows.
class Layer {
 public:
  // `output`: which of the model's it gives, or no_output.
  Layer(Expansion& expansion, std::string kind, std::string path, Place place, int output);

  const std::string& path() const { return path_; }
  int model_output() const { return output_; }
  bool training() const;
  std::uint64_t seed() const;
  // One sample's shape, and the batch's of a sample's.
  Shape shape(const Feature& feature) const;
  const TensorType& type(const Feature& feature) const;  // of the batch
  DType compute() const;                                 // of activations
  Shape batch_of(const Shape& sample) const;

  // "conv2d 'c3': <message> (from 'pool2' at 33:5)"; returns the unknown feature.
  Feature error(const std::string& message, const Feature& cause) const;

  // A float32 parameter `path/name`. Biases and what normalises do not decay.
  TensorId parameter(const std::string& name, const Shape& shape, Initializer initializer, bool decay);
  // A running statistic `path/name` [channels].
  TensorId statistic(const std::string& name, std::int64_t channels, float momentum, float initial,
                     TensorId batch_value);
  // Appends an op; `further` names its outputs behind the first. Returns them all.
  std::vector<TensorId> op(std::shared_ptr<const OpDef> def, std::vector<TensorId> inputs,
                           std::vector<std::string> further = {});
  // Appends the activation, if there is one and the loss does not take it over.
  TensorId activate(TensorId x, const Choice& activation);
  // The sample numbers and the step, which dropout needs.
  std::vector<TensorId> dropout_inputs();
  // The feature that the layer gives.
  Feature output(TensorId tensor) const { return {tensor, path_, place_}; }
  // Expands layers below `path` (this layer's, or one beneath), which may not have the names `taken`.
  Feature expand(const std::vector<Choice>& layers, const Feature& input, const std::string& path,
                 int output = no_output, const std::vector<std::string>& taken = {});

 private:
  friend class Expansion;

  Expansion& expansion_;
  std::string kind_;
  std::string path_;
  Place place_;
  int output_;
  std::vector<TensorId> tensors_;     // that its ops produced
  std::map<std::string, int> kinds_;  // of its ops, counted
  LayerLine line_;                    // sums of its ops and parameters
};

}  // namespace trainctl
