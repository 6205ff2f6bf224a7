// The graph: the ops that the layers of a model expand into for one batch size, with the shapes of all tensors.
// Programs are built from it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/op.h"

namespace trainctl {

// The standard deviation of a standard normal distribution truncated at two standard deviations. Like Keras, the
// variance-scaling initializers divide by it, so that the truncated values have the intended variance.
inline constexpr double truncated_stddev = 0.87962566103423978;

// The initializer of a parameter, with Keras' name ("glorot_uniform", "zeros", "constant", ...). The values are a
// function of (seed, the parameter's name, element), computed by initialize().
struct Initializer {
  std::string name = "zeros";
  double value = 0;                        // constant
  double mean = 0;                         // normal, truncated_normal
  double stddev = 0.05;                    // normal; truncated_normal (before truncation)
  double minimum = -0.05, maximum = 0.05;  // uniform
  double gain = 1;                         // orthogonal, identity
  double fan_in = 0, fan_out = 0;          // set by the layer: input and output connections of one unit
  // Elements [ones_begin, ones_end) are 1 with every initializer: the bias of the forget gate of an LSTM.
  std::int64_t ones_begin = 0, ones_end = 0;
  std::function<void(float*)> compute = {};  // writes the values, instead of an initializer by name; may be empty
};

struct GraphParameter {
  TensorId tensor = no_tensor;
  Initializer initializer;
  bool trainable = true;
  bool decay = true;  // whether weight decay may apply; false for biases and normalization parameters
  // The pipeline stages that hold the parameter, ascending, if layers of several stages share it; otherwise empty.
  std::vector<int> stages = {};
  Penalty penalty = {};
};

// A running statistic, and the statistic of the batch that updates it: moving = momentum * moving + (1 - momentum) *
// value.
struct GraphStatistic {
  TensorId moving = no_tensor;       // if a layer is used several times, each use updates it in turn
  TensorId batch_value = no_tensor;  // no_tensor in evaluation
  float momentum = 0.99f;
  float initial = 0;
};

// A kernel that each training step divides by its spectral norm before the first forward pass, if the kernel trains
// (core/graph/ops/training/spectral_norm.h).
struct GraphSpectralNorm {
  TensorId kernel = no_tensor;
  TensorId vector = no_tensor;  // u [1, columns], a parameter that does not train
  int iterations = 1;
};

struct Graph {
  std::int64_t batch = 0;  // number of samples, which is dimension 0 of inputs and outputs
  bool training = false;
  DType compute = DType::float32;
  std::vector<Tensor> tensors;
  std::vector<Op> ops;  // forward, in execution order
  std::vector<GraphParameter> parameters;
  std::vector<GraphStatistic> statistics;
  std::vector<GraphSpectralNorm> spectral_norms = {};
  // [batch, ...], role input; float32, int32, or uint8 if a Normalize op follows. An input or output that belongs to
  // another stage of a pipeline is no_tensor.
  std::vector<TensorId> inputs;
  TensorId weights = no_tensor;   // float32 [batch, ...], role input: sample or position weights, if there are losses
  TensorId samples = no_tensor;   // int64 [batch], role input: sample numbers, if there are losses or dropout
  TensorId step = no_tensor;      // int64 scalar: number of the step, if there is dropout
  std::vector<TensorId> outputs;  // for each output of the model, the input of its loss
  // For each output: its padding mask, uint8 [batch, P...] for an output [batch, P..., K], which is 0 at the positions
  // that losses and metrics leave out; no_tensor if there is none. Empty if no output has a mask.
  std::vector<TensorId> masks = {};
  // For each output: its targets, role input, if ops of the graph read them; else no_tensor. Empty if no op reads
  // targets.
  std::vector<TensorId> targets = {};
  std::int64_t bytes = 0;  // total size of all tensors

  // The maximum of `bytes`, which exceeds the memory of any machine a thousandfold. Sums and small multiples of sizes
  // below it do not overflow.
  static constexpr std::int64_t max_bytes = std::int64_t{1} << 56;

  const Tensor& tensor(TensorId id) const { return tensors[index(id)]; }
  // Appends a tensor. Throws OverflowError if the total size of the tensors exceeds max_bytes.
  TensorId add_tensor(Tensor tensor) {
    bytes = checked_add(bytes, tensor.type.bytes());
    if (bytes > max_bytes) throw_overflow();
    tensors.push_back(std::move(tensor));
    return static_cast<TensorId>(tensors.size() - 1);
  }
  // Appends an op and returns its outputs: new activations with the names `name`/output, or `name`/SUFFIX for each of
  // `suffixes`. The output of an op such as Reshape is an alias of its input.
  std::vector<TensorId> add_op(std::shared_ptr<const OpDef> def, std::vector<TensorId> inputs, const std::string& name,
                               const SourceLocation& location, std::vector<std::string> suffixes = {});
};

// Appends the tensor of sample numbers to a graph that has none yet, and returns it.
TensorId add_sample_numbers(Graph& graph);

}  // namespace trainctl
