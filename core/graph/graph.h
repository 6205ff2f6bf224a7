// Graph: the ops that a model's layers expand into for one batch size, with shapes, before segments and schedule.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/op.h"

namespace trainctl {

// The standard deviation of a standard normal number that is cut off at two standard deviations; where a variance is
// wanted, Keras divides by it.
inline constexpr double truncated_stddev = 0.87962566103423978;

// The initializer of a parameter, under Keras' name ("glorot_uniform", "zeros", "constant", ...). The values are a
// function of (seed, the parameter's name, element), computed by initialize().
struct Initializer {
  std::string name = "zeros";
  double value = 0;                        // constant
  double mean = 0;                         // normal, truncated_normal
  double stddev = 0.05;                    // normal; truncated_normal, before values are cut off
  double minimum = -0.05, maximum = 0.05;  // uniform
  double gain = 1;                         // orthogonal, identity
  double fan_in = 0, fan_out = 0;          // set by the layer: input and output connections of one unit
  // Elements that begin at 1 whatever the name says: the bias of an LSTM's forget gate.
  std::int64_t ones_begin = 0, ones_end = 0;
};

struct GraphParameter {
  TensorId tensor = no_tensor;
  Initializer initializer;
  bool trainable = true;
  bool decay = true;  // whether weight decay may apply; false for biases and normalization parameters
  // The stages of a pipeline that hold the parameter, ascending, where several do: layers on each of them share it.
  std::vector<int> stages = {};
  Penalty penalty = {};
};

// A running statistic and the batch's statistic that updates it: moving = momentum * moving + (1 - momentum) * value.
struct GraphStatistic {
  TensorId moving = no_tensor;       // of a layer that is used several times, several batch values move it in turn
  TensorId batch_value = no_tensor;  // no_tensor in evaluation
  float momentum = 0.99f;
  float initial = 0;
};

struct Graph {
  std::int64_t batch = 0;  // samples: dimension 0 of inputs and outputs
  bool training = false;
  DType compute = DType::float32;
  std::vector<Tensor> tensors;
  std::vector<Op> ops;  // forward, in execution order
  std::vector<GraphParameter> parameters;
  std::vector<GraphStatistic> statistics;
  // [batch, ...], role input; float32, uint8 that a Normalize follows, or int32. no_tensor for an input, and below for
  // an output, that belongs to other stages of a pipeline.
  std::vector<TensorId> inputs;
  TensorId weights = no_tensor;   // float32 [batch, ...], role input: of samples or positions; in programs with losses
  TensorId samples = no_tensor;   // int64 [batch], role input; in programs with losses, and where dropout needs it
  TensorId step = no_tensor;      // int64 scalar; only where dropout needs it
  std::vector<TensorId> outputs;  // the tensors that the losses take, by output
  std::int64_t bytes = 0;         // of all tensors together

  // The most bytes of a graph. Sums and multiples of sizes below this limit never overflow; it is a thousand times the
  // memory of any machine.
  static constexpr std::int64_t most_bytes = std::int64_t{1} << 56;

  const Tensor& tensor(TensorId id) const { return tensors[static_cast<std::size_t>(id)]; }
  // Appends a tensor. Throws OverflowError where the graph's tensors would have more than most_bytes together.
  TensorId add_tensor(Tensor tensor) {
    bytes = checked_add(bytes, tensor.type.bytes());
    if (bytes > most_bytes) throw_overflow();
    tensors.push_back(std::move(tensor));
    return static_cast<TensorId>(tensors.size() - 1);
  }
  // Appends an op. Its outputs become new activations named `name`/output, or `name`/`suffix` for the suffixes given;
  // the output of Reshape becomes an alias of its input. Returns the outputs.
  std::vector<TensorId> add_op(std::shared_ptr<const OpDef> def, std::vector<TensorId> inputs, const std::string& name,
                               const SourceLocation& location, std::vector<std::string> suffixes = {});
};

// Adds the tensor of the numbers of a batch's samples to the graph, which has none.
TensorId add_sample_numbers(Graph& graph);

}  // namespace trainctl
