// Graph: the ops that a model's layers expand into for one batch size, with shapes, before segments and schedule.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/op.h"

namespace trainctl {

// How a parameter begins. `name` is Keras' ("glorot_uniform", "zeros", "constant", ...); values are a function of
// (seed, the parameter's name, element), drawn by core/graph/initialize.
struct Initializer {
  std::string name = "zeros";
  double value = 0;                        // constant
  double mean = 0;                         // normal
  double stddev = 0.05;                    // normal
  double minimum = -0.05, maximum = 0.05;  // uniform
  double fan_in = 0, fan_out = 0;          // filled by the layer
};

struct GraphParameter {
  TensorId tensor = no_tensor;
  Initializer initializer;
  bool trainable = true;
  bool decay = true;  // false for biases and normalisation parameters: what "weight decay that can spare" spares
};

// A running statistic and the batch's value that flows into it: moving = momentum * moving + (1 - momentum) * value.
struct GraphStatistic {
  TensorId moving = no_tensor;
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
  std::vector<TensorId> inputs;   // [batch, ...], role input; float32, uint8 that a Normalize follows, or int32
  TensorId samples = no_tensor;   // int64 [batch], role input; only where dropout needs it
  TensorId step = no_tensor;      // int64 scalar; likewise
  std::vector<TensorId> outputs;  // what the losses take
  std::int64_t bytes = 0;         // of all tensors together

  // So many that sums and multiples of what a graph holds never overflow; no machine has a thousandth of it.
  static constexpr std::int64_t most_bytes = std::int64_t{1} << 56;

  const Tensor& tensor(TensorId id) const { return tensors[static_cast<std::size_t>(id)]; }
  // Throws OverflowError where the graph would hold more than most_bytes.
  TensorId add_tensor(Tensor tensor) {
    bytes = checked_add(bytes, tensor.type.bytes());
    if (bytes > most_bytes) throw_overflow();
    tensors.push_back(std::move(tensor));
    return static_cast<TensorId>(tensors.size() - 1);
  }
  // Appends an op; its outputs become new activations named `name`/output, or `name`/`suffix` where suffixes are given.
  // Reshape's output becomes an alias of its input.
  std::vector<TensorId> add_op(std::shared_ptr<const OpDef> def, std::vector<TensorId> inputs, const std::string& name,
                               const Place& place, std::vector<std::string> suffixes = {});
};

// The backward ops of a graph, in execution order, and the gradient of every trainable parameter.
struct Backward {
  std::vector<Op> ops;
  std::map<TensorId, TensorId>
      parameter_gradients;  // parameter -> gradient (role gradient, float32, like the parameter)
};

// Reverse-mode differentiation. `output_gradients` are the gradients of the sum of losses by graph.outputs, activations
// that exist already; empty in a stage that only sends to another rank, whose gradient comes from there. New
// tensors are appended to the graph. Gradients of tensors with several consumers are summed by Add. What no trainable
// parameter needs is not computed (the gradient by the input; everything before the first trainable layer). Ops that
// produce parameter gradients add to what is there where `accumulate`.
Backward differentiate(Graph& graph, const std::vector<TensorId>& output_gradients, bool accumulate);

// What an op's differentiate() sees: gradients of its outputs, and a place to put those of its inputs.
class Differentiator {
 public:
  virtual ~Differentiator() = default;

  virtual const Tensor& tensor(TensorId id) const = 0;
  // The gradient by an output of the op, or no_tensor where nothing depends on it.
  virtual TensorId gradient_of(TensorId output) const = 0;
  // Whether the gradient by this input is wanted.
  virtual bool wants(TensorId input) const = 0;
  virtual bool accumulate() const = 0;
  // The tensor that receives a trainable parameter's gradient.
  virtual TensorId parameter_gradient(TensorId parameter) = 0;
  // Appends a backward op whose outputs are new activations; returns them.
  virtual std::vector<TensorId> emit(std::shared_ptr<const OpDef> def, std::vector<TensorId> inputs,
                                     const Op& forward) = 0;
  // Appends a backward op that writes the given tensors (no_tensor among them: a new activation); returns its outputs.
  virtual std::vector<TensorId> emit_into(std::shared_ptr<const OpDef> def, std::vector<TensorId> inputs,
                                          std::vector<TensorId> outputs, const Op& forward) = 0;
  // Adds `gradient` to the gradient by `input`.
  virtual void contribute(TensorId input, TensorId gradient) = 0;
};

// Writes the initial values of a parameter: a function of (seed, name, element), equal on every rank and in every run.
void initialize(const GraphParameter& parameter, const Tensor& tensor, std::uint64_t seed, float* values);

}  // namespace trainctl
