// Operation graphs of cuDNN's graph API: convolutions and what follows them, on dense channels-last tensors.
#pragma once

#include <string>

#include "core/backend/cuda/cudnn/descriptor.h"
#include "core/graph/ops/elementwise/activations.h"
#include "core/graph/ops/images/window.h"

namespace trainctl::cuda {

// The GPU for which engines and plans are made: the GPU of a handle, or a GPU that a device-property descriptor
// describes. Engines for a described GPU can be listed without a GPU, but their plans cannot run.
struct GraphTarget {
  cudnnHandle_t handle = nullptr;
  const Descriptor* properties = nullptr;
};

// What a convolution of a graph computes: its output, the gradient with respect to its input, or that of its kernel.
enum class Convolving { forward, input_gradient, weight_gradient };

class Graph {
 public:
  // A tensor in memory, of shape [n, height, width, channels] and aligned to 16 bytes; returns its number, from 0.
  // Kernels are [out, height, width, in / groups]; a vector along the channels is [1, 1, 1, channels]. In graphs of
  // volumes each tensor also has a depth, before the height.
  int tensor(const Shape& shape, DType dtype);
  // A float32 tensor between two ops of the graph, not in memory.
  int intermediate(const Shape& shape);

  // Adds a convolution. x, kernel and y are the tensors of its forward direction; `direction` determines which one of
  // them (or its gradient) is computed from the other two. The result overwrites the tensor or, with `accumulate`, is
  // added to it. Sums are float32.
  template <std::size_t axes>
  void convolve(Convolving direction, const WindowOf<axes>& window, int x, int kernel, int y, bool accumulate = false);
  // y = x + b and y = x b, where b is a vector along the channels or has the shape of x.
  void add(int x, int b, int y);
  void multiply(int x, int b, int y);
  // y = f(x). The function is one that is_pointwise().
  void activate(const ActivationFunction& function, int x, int y);
  // dx = dy where y > 0, else 0.
  void relu_gradient(int dy, int y, int dx);
  // Adds float32 sums over all dimensions but the channels: of x, or of x and of its squares.
  void sum(int x, int sums);
  void statistics(int x, int sums, int squares);

  // Ends the graph: no tensor or operation may be added afterwards. Returns false if cuDNN does not support the graph.
  bool finalize(const GraphTarget& target);

  const Descriptor& get() const { return graph_; }
  // A text that is equal for graphs with equal tensors and operations.
  const std::string& text() const { return text_; }
  // cuDNN's numbers of the tensors in memory, in the order in which the tensors were added.
  const std::vector<std::int64_t>& ids() const { return ids_; }

 private:
  int add_tensor(const Shape& shape, DType dtype, bool in_memory);
  void add_pointwise(const Descriptor& mode, int x, int b, int y);
  const Descriptor& at(int tensor) const { return tensors_[static_cast<std::size_t>(tensor)]; }

  std::vector<Descriptor> tensors_;
  std::vector<Descriptor> operations_;
  std::vector<std::int64_t> ids_;
  std::string text_;
  Descriptor graph_{CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR};
};

// Whether cuDNN can compute the activation as an op of a graph.
bool is_pointwise(const ActivationFunction& function);

}  // namespace trainctl::cuda
