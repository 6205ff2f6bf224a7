// Convolutions as operation graphs of cuDNN.
#pragma once

#include "core/backend/cuda/cudnn/graph.h"

namespace trainctl::cuda {

// A convolution over images (2 axes) or volumes (3 axes). Images are channels-last, kernels [out, [depth,] height,
// width, in / groups].
template <std::size_t axes>
struct ConvolutionShapeOf {
  WindowOf<axes> window;
  std::int64_t groups = 1;
  Shape x, y;  // [n, [depth,] height, width, channels]
  DType dtype = DType::float32;

  Shape kernel() const {
    std::vector<std::int64_t> sizes{y.back()};
    sizes.insert(sizes.end(), window.size.begin(), window.size.end());
    sizes.push_back(x.back() / groups);
    return Shape(std::move(sizes));
  }
};

using ConvolutionShape = ConvolutionShapeOf<2>;

// Tensors in memory: x, kernel, y in the shape's dtype; for the gradient of the kernel x, dkernel, dy, where dkernel
// has `kernel_dtype`. With `accumulate`, which only gradients by the input use, the result is added to the output;
// cuDNN has the same engines with and without it.
template <std::size_t axes>
Graph convolution_graph(Convolving direction, const ConvolutionShapeOf<axes>& shape, DType kernel_dtype,
                        bool accumulate = false);

// y = f(conv(x, kernel) + bias) in one graph. Tensors in memory: x, kernel, y, and the bias if there is one, all in the
// shape's dtype (cuDNN has only few engines for half-precision convolutions with float32 biases). The function is none
// or is_pointwise().
template <std::size_t axes>
Graph fused_convolution_graph(const ConvolutionShapeOf<axes>& shape, bool bias, const ActivationFunction& function);

// A convolution and the sums of its result by channel, with which a following batch normalisation begins. Tensors in
// memory: x, kernel, y in the shape's dtype, sums and sums of squares in float32.
Graph statistics_graph(const ConvolutionShape& shape);

// The gradient by the input of a convolution after batch normalisation and ReLU, up to the sums with which the gradient
// of the normalisation begins: g = dx where y > 0, else 0. dx is the gradient by the input, to which another gradient
// is added with `residual`. Tensors in memory: kernel, dy, [the other gradient], y (the convolution's input), g, the
// sums of g by channel, and with `products` z (the normalisation's input) and the sums of g z by channel.
struct GradientSums {
  bool residual = false, products = true;
};
Graph gradient_sums_graph(const ConvolutionShape& shape, const GradientSums& sums);

}  // namespace trainctl::cuda
