// Operation graphs of the emulated cuDNN, computed by plain loops.
#pragma once

#include "test/emulated_gpu/cudnn_descriptor.h"
#include "test/emulated_gpu/values.h"

namespace emulated::cudnn {

struct Tensor {
  Number type;
  std::vector<std::int64_t> sizes, strides;  // [n, channels, depth, height, width]; images have depth 1
  std::int64_t id, alignment;
  bool is_virtual;

  explicit Tensor(const Descriptor& descriptor);
  std::int64_t count() const;
  std::int64_t bytes() const;  // from the first element to the last
};

enum class Direction { forward, input_gradient, weight_gradient };

struct Convolution {
  Direction direction;
  Tensor x, w, y;
  std::vector<std::int64_t> before, after, strides, dilation;  // depth, height, width
  float alpha, beta;

  explicit Convolution(const Descriptor& operation);
  // Throws Refusal if the sizes do not fit together.
  void check() const;
};

// Checks that the operations of a graph fit together.
void check_graph(const Descriptor& graph);

// Runs a graph on memory: addresses by tensor id. `backwards` adds in the opposite order.
void run_graph(const Descriptor& graph, const std::map<std::int64_t, void*>& memory, bool backwards);

// Returns the tensors of a graph that are in memory.
std::vector<Tensor> tensors_in_memory(const Descriptor& graph);

}  // namespace emulated::cudnn
