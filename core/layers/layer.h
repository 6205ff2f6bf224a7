// The base of all layers: the options that a user writes, and the expansion of layers into ops.
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

// The largest number of channels of a layer: libraries count channels in 32 bits.
inline constexpr double max_channels = 2'147'483'647;

// The output of a layer, or an input of the model. A feature is unknown after an error in its layer; layers with an
// unknown input are not checked further.
struct Feature {
  TensorId tensor = no_tensor;
  std::string layer;  // path of the layer that produced it; "input" for the model's input
  SourceLocation location;
  // The padding mask uint8 [N, P...] of a feature [N, P..., C], as in Keras: 0 at the positions that are padding.
  // no_tensor: there is no mask.
  TensorId mask = no_tensor;

  bool known() const { return tensor != no_tensor; }
  bool masked() const { return mask != no_tensor; }
};

// What a layer does with padding masks: its output has no mask; that of its first input; a position of the output is
// padding if it is in all inputs, and all inputs have masks; or expand() sets the mask of its output.
enum class MaskUse { ends, keeps, merges, own };

class Layer;

// The output number of layers that produce none of the model's outputs.
inline constexpr int no_output = -1;

// Base of all layers' options.
struct LayerOptions : Options {
  Auto<std::string> name;

  // The layers that produce the inputs of this layer; empty: the previous layer. A reference without a name also means
  // the previous layer.
  virtual std::vector<Reference> references() const = 0;
  // Appends the layer's ops to the graph. `inputs` has at least one feature; all are known. Returns the output, or an
  // unknown feature after reporting an error.
  virtual Feature expand(Layer& layer, const std::vector<Feature>& inputs) const = 0;
  // The activation at the end of the layer; null if there is none.
  virtual const Choice* final_activation() const { return nullptr; }
  // The size of the vocabulary for a layer that reads tokens, which are whole numbers from 0 to below that size; 0 for
  // layers that read values.
  virtual std::int64_t tokens() const { return 0; }
  // Whether input number `input` may hold whole numbers instead of values.
  virtual bool reads_numbers([[maybe_unused]] std::size_t input) const { return tokens() != 0; }
  // Whether the values of this layer depend on the numbers of the samples, as those of dropout do.
  virtual bool numbers_samples() const { return false; }
  // Whether the layer changes each value alone, by a random number of the sample and of the value's index in it, so
  // that it may read several steps as one sample.
  virtual bool changes_values_alone() const { return false; }
  // What becomes of the masks of the inputs.
  virtual MaskUse mask_use() const { return MaskUse::ends; }
  // Whether this is a further use of a layer that has the options of the first use, except for those that state how
  // this use differs (like the arguments of Keras' call()). Otherwise the options of all uses must be equal.
  virtual bool takes_options_of_first_use() const { return false; }
};

// Base of layers with one input.
struct ChainedLayer : LayerOptions {
  Reference from;

  std::vector<Reference> references() const override {
    return from.name.empty() ? std::vector<Reference>{} : std::vector{from};
  }
};

// The key `name`, which all layers have.
template <class T>
Keys<T> named_layer_keys(std::string_view kind, std::string_view meaning) {
  Keys<T> keys(kind, meaning);
  return std::move(keys).key(
      "name", &T::name,
      "Prefix of the names of the layer's tensors; auto: the kind of the layer, numbered. A name that "
      "occurs again in the same list means that the same layer is used again, with the same weights; "
      "its options must be equal. The second use is called NAME@2.");
}

// The keys of layers with one input, or with at least two; a layer adds its own keys.
template <class T>
Keys<T> layer_keys(std::string_view kind, std::string_view meaning) {
  Keys<T> keys = named_layer_keys<T>(kind, meaning);
  if constexpr (std::is_base_of_v<ChainedLayer, T>) {
    std::move(keys).key(
        "from", &T::from,
        "The layer whose output is the input; absent: the previous layer. If a layer is used several times, NAME means "
        "its last use before this layer, and NAME@1, NAME@2, ... mean its single uses.");
  } else {
    std::move(keys).required("from", &T::from, "The layers whose outputs are the inputs, at least two.");
  }
  return keys;
}

class Expansion;  // the expansion of the whole model (core/layers/model/expansion.h)

// A layer, or one use of a layer, during its expansion: it knows its path in the model and appends to the graph.
class Layer {
 public:
  // `output` is the number of the model's output that the layer produces, or no_output.
  Layer(Expansion& expansion, std::string kind, std::string path, SourceLocation location, int output);

  const std::string& path() const { return path_; }
  int model_output() const { return output_; }
  bool training() const;
  // Whether training leaves the layer's weights and running statistics unchanged.
  bool frozen() const { return frozen_; }
  std::uint64_t seed() const;
  // The options of the layer's first use; this use's own options if it is the first.
  const LayerOptions& first_use() const;
  // The shape of one sample, without the batch dimension.
  Shape shape(const Feature& feature) const;
  const TensorType& type(const Feature& feature) const;  // type of the whole batch
  DType compute() const;                                 // dtype of activations
  Shape batch_of(const Shape& sample) const;

  // Reports an error such as "conv2d 'c3': <message> (from 'pool2' at 33:5)", if `cause` is the feature of 'pool2';
  // returns an unknown feature.
  Feature error(const std::string& message, const Feature& cause) const;

  // Returns the layer's float32 parameter `path/name`; the layer's first use adds it. `decay`: whether weight decay may
  // apply; false for biases and normalization.
  TensorId parameter(const std::string& name, const Shape& shape, Initializer initializer, bool decay,
                     Penalty penalty = {});
  // Returns the layer's running statistic `path/name` of shape [channels]; the layer's first use adds it, and each use
  // updates it from its own `batch_value`.
  TensorId statistic(const std::string& name, std::int64_t channels, float momentum, float initial,
                     TensorId batch_value);
  // Makes each training step divide the kernel, or the embeddings, of the layer that computes `of` by its spectral norm
  // (GraphSpectralNorm), and adds the parameter `path/vector_u`.
  void normalize_kernel(const Feature& of, int iterations);
  // Appends an op; `further` are the names of its outputs after the first. Returns all outputs.
  std::vector<TensorId> op(std::shared_ptr<const OpDef> def, std::vector<TensorId> inputs,
                           std::vector<std::string> further = {});
  // Appends an activation, unless it is linear or fused into the loss. Returns the result.
  TensorId activate(TensorId x, const Choice& activation);
  // The inputs of dropout besides the values: the samples' numbers and the step.
  std::vector<TensorId> dropout_inputs();
  // Returns the feature of a tensor that this layer produces.
  Feature output(TensorId tensor, TensorId mask = no_tensor) const { return {tensor, path_, location_, mask}; }
  // Makes the tensor a further output of this layer, which other layers read as LAYER/name.
  void add_output(const std::string& name, TensorId tensor);
  // Returns the further output `name` of the layer whose output is `feature`; an unknown feature if there is none.
  Feature further_output(const Feature& feature, const std::string& name) const;
  // Returns the mask of a feature that combines these features (MaskUse::merges); no_tensor if one of them has none.
  TensorId merged_mask(const std::vector<Feature>& features);
  // Expands layers under `path`, which is the path of this layer or begins with that path. No layer may have a name in
  // `taken`.
  Feature expand(const std::vector<Choice>& layers, const Feature& input, const std::string& path,
                 int output = no_output, const std::vector<std::string>& taken = {});
  // Expands a layer that is a part of this one and is called `name`; returns its output. `output` is the number of the
  // model's output that the part produces.
  Feature expand_part(const std::string& kind, const LayerOptions& options, const std::string& name,
                      const std::vector<Feature>& inputs, int output = no_output);
  // Expands layers for `input` [N * steps, ...], which has the steps of all samples as samples.
  Feature expand_for_steps(const std::vector<Choice>& layers, const Feature& input, std::int64_t steps);
  // Makes the layers under `path` a block of the model (BuiltModel::blocks).
  void add_block(const std::string& path);

 private:
  friend class Expansion;

  // Returns the layer's parameter or statistic of this name, and whether it is new. Reports an error if its shape
  // differs from its shape at the layer's first use.
  std::pair<TensorId, bool> weights(const std::string& name, const Shape& shape, Role role);

  Expansion& expansion_;
  std::string kind_;
  std::string path_;
  SourceLocation location_;
  int output_;
  bool frozen_;
  std::vector<TensorId> tensors_;     // outputs of the layer's ops
  std::map<std::string, int> kinds_;  // key: kind of op; value: number of the layer's ops of this kind
  LayerLine line_;                    // sums over the layer's ops and parameters so far
  bool is_other_shape_ = false;       // whether a different shape of its weights was reported
};

}  // namespace trainctl
