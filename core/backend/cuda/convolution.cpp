// Convolutions as operation graphs of cuDNN.
#include "core/backend/cuda/convolution.h"

namespace trainctl::cuda {

Graph convolution_graph(Convolving direction, const ConvolutionShape& shape, DType kernel_dtype, bool accumulate) {
  Graph graph;
  const int x = graph.tensor(shape.x, shape.dtype);
  const int kernel = graph.tensor(shape.kernel(), kernel_dtype);
  const int y = graph.tensor(shape.y, shape.dtype);
  graph.convolve(direction, shape.window, x, kernel, y, accumulate);
  return graph;
}

Graph fused_convolution_graph(const ConvolutionShape& shape, bool bias, const ActivationFunction& function) {
  Graph graph;
  const int x = graph.tensor(shape.x, shape.dtype);
  const int kernel = graph.tensor(shape.kernel(), shape.dtype);
  const int y = graph.tensor(shape.y, shape.dtype);
  const bool activates = function.kind != ActivationKind::none;
  int last = graph.intermediate(shape.y);
  graph.convolve(Convolving::forward, shape.window, x, kernel, last);
  if (bias) {
    const int b = graph.tensor({1, 1, 1, shape.y[3]}, shape.dtype);
    const int sum = activates ? graph.intermediate(shape.y) : y;
    graph.add(last, b, sum);
    last = sum;
  }
  if (activates) graph.activate(function, last, y);
  return graph;
}

}  // namespace trainctl::cuda
