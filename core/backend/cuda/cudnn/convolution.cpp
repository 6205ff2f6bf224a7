// Makes operation graphs of cuDNN for convolutions.
#include "core/backend/cuda/cudnn/convolution.h"

namespace trainctl::cuda {

template <std::size_t axes>
Graph convolution_graph(Convolving direction, const ConvolutionShapeOf<axes>& shape, DType kernel_dtype,
                        bool accumulate) {
  Graph graph;
  const int x = graph.tensor(shape.x, shape.dtype);
  const int kernel = graph.tensor(shape.kernel(), kernel_dtype);
  const int y = graph.tensor(shape.y, shape.dtype);
  graph.convolve(direction, shape.window, x, kernel, y, accumulate);
  return graph;
}

template <std::size_t axes>
Graph fused_convolution_graph(const ConvolutionShapeOf<axes>& shape, bool bias, const ActivationFunction& function) {
  Graph graph;
  const int x = graph.tensor(shape.x, shape.dtype);
  const int kernel = graph.tensor(shape.kernel(), shape.dtype);
  const int y = graph.tensor(shape.y, shape.dtype);
  const bool activates = function.kind != ActivationKind::none;
  int last = graph.intermediate(shape.y);
  graph.convolve(Convolving::forward, shape.window, x, kernel, last);
  if (bias) {
    std::vector<std::int64_t> channels(axes + 1, 1);
    channels.push_back(shape.y.back());
    const int b = graph.tensor(Shape(std::move(channels)), shape.dtype);
    const int sum = activates ? graph.intermediate(shape.y) : y;
    graph.add(last, b, sum);
    last = sum;
  }
  if (activates) graph.activate(function, last, y);
  return graph;
}

template Graph convolution_graph(Convolving, const ConvolutionShapeOf<2>&, DType, bool);
template Graph convolution_graph(Convolving, const ConvolutionShapeOf<3>&, DType, bool);
template Graph fused_convolution_graph(const ConvolutionShapeOf<2>&, bool, const ActivationFunction&);
template Graph fused_convolution_graph(const ConvolutionShapeOf<3>&, bool, const ActivationFunction&);

Graph statistics_graph(const ConvolutionShape& shape) {
  Graph graph;
  const Shape by_channel{1, 1, 1, shape.y[3]};
  const int x = graph.tensor(shape.x, shape.dtype);
  const int kernel = graph.tensor(shape.kernel(), shape.dtype);
  const int y = graph.tensor(shape.y, shape.dtype);
  graph.convolve(Convolving::forward, shape.window, x, kernel, y);
  const int sums = graph.tensor(by_channel, DType::float32);
  graph.statistics(y, sums, graph.tensor(by_channel, DType::float32));
  return graph;
}

Graph gradient_sums_graph(const ConvolutionShape& shape, const GradientSums& sums) {
  Graph graph;
  const Shape by_channel{1, 1, 1, shape.x[3]};
  const int kernel = graph.tensor(shape.kernel(), shape.dtype);
  const int dy = graph.tensor(shape.y, shape.dtype);
  int dx = graph.intermediate(shape.x);
  graph.convolve(Convolving::input_gradient, shape.window, dx, kernel, dy);
  if (sums.residual) {
    const int other = graph.tensor(shape.x, shape.dtype), sum = graph.intermediate(shape.x);
    graph.add(dx, other, sum);
    dx = sum;
  }
  const int y = graph.tensor(shape.x, shape.dtype), g = graph.tensor(shape.x, shape.dtype);
  graph.relu_gradient(dx, y, g);
  graph.sum(g, graph.tensor(by_channel, DType::float32));
  if (sums.products) {
    const int z = graph.tensor(shape.x, shape.dtype), product = graph.intermediate(shape.x);
    graph.multiply(g, z, product);
    graph.sum(product, graph.tensor(by_channel, DType::float32));
  }
  return graph;
}

}  // namespace trainctl::cuda
