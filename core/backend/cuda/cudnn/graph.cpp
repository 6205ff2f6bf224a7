// Builds operation graphs of cuDNN's graph API.
#include "core/backend/cuda/cudnn/graph.h"

#include <algorithm>
#include <array>
#include <optional>

#include "core/base/error.h"
#include "core/base/format.h"

namespace trainctl::cuda {
namespace {

constexpr std::int64_t alignment = 16;  // bytes

cudnnDataType_t cudnn_type(DType dtype) {
  if (dtype == DType::bfloat16) return CUDNN_DATA_BFLOAT16;
  if (dtype == DType::float16) return CUDNN_DATA_HALF;
  require(dtype == DType::float32, "cuDNN does not compute in this dtype");
  return CUDNN_DATA_FLOAT;
}

template <std::size_t axes>
Descriptor convolution_of(const WindowOf<axes>& w) {
  Descriptor d(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  const auto by_axis = [&](cudnnBackendAttributeName_t name, const std::array<std::int64_t, axes>& values) {
    d.set(name, std::span<const std::int64_t>(values));
  };
  d.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  d.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION);
  d.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<std::int64_t>(axes));
  by_axis(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, w.strides);
  by_axis(CUDNN_ATTR_CONVOLUTION_DILATIONS, w.dilation);
  by_axis(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, w.padding_before);
  by_axis(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, w.padding_after);
  d.finalize();
  return d;
}

// The names of cuDNN's attributes for one direction of a convolution.
struct ConvolutionNames {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t x, kernel, y, convolution, alpha, beta;
};

constexpr ConvolutionNames names_of(Convolving direction) {
  switch (direction) {
    case Convolving::input_gradient:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case Convolving::weight_gradient:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
    case Convolving::forward:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
}

std::optional<cudnnPointwiseMode_t> mode_of(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::relu:
    case ActivationKind::leaky_relu:
      return CUDNN_POINTWISE_RELU_FWD;
    case ActivationKind::tanh:
      return CUDNN_POINTWISE_TANH_FWD;
    case ActivationKind::sigmoid:
      return CUDNN_POINTWISE_SIGMOID_FWD;
    default:
      return {};
  }
}

Descriptor pointwise(cudnnPointwiseMode_t mode) {
  Descriptor d(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  d.set(CUDNN_ATTR_POINTWISE_MODE, mode);
  d.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
  return d;
}

}  // namespace

bool is_pointwise(const ActivationFunction& function) { return mode_of(function.kind).has_value(); }

int Graph::tensor(const Shape& shape, DType dtype) { return add_tensor(shape, dtype, true); }

int Graph::intermediate(const Shape& shape) { return add_tensor(shape, DType::float32, false); }

// cuDNN orders dimensions as [n, channels, height, width], independently of their order in memory.
int Graph::add_tensor(const Shape& s, DType dtype, bool in_memory) {
  std::vector<std::int64_t> sizes = s.sizes(), strides(sizes.size(), 1);
  for (std::size_t axis = sizes.size() - 1; axis-- > 0;) strides[axis] = strides[axis + 1] * sizes[axis + 1];
  std::rotate(sizes.begin() + 1, sizes.end() - 1, sizes.end());
  std::rotate(strides.begin() + 1, strides.end() - 1, strides.end());
  const auto number = static_cast<int>(tensors_.size());
  const std::int64_t id = number + 1;
  Descriptor& d = tensors_.emplace_back(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  d.set(CUDNN_ATTR_TENSOR_DATA_TYPE, cudnn_type(dtype));
  d.set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span<const std::int64_t>(sizes));
  d.set(CUDNN_ATTR_TENSOR_STRIDES, std::span<const std::int64_t>(strides));
  d.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  d.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment);
  d.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, !in_memory);
  d.finalize();
  if (in_memory) ids_.push_back(id);
  text_ += format("{}:{}{} ", name_of(dtype), to_string(s), in_memory ? "" : " between");
  return number;
}

template <std::size_t axes>
void Graph::convolve(Convolving direction, const WindowOf<axes>& window, int x, int kernel, int y, bool accumulate) {
  const ConvolutionNames names = names_of(direction);
  Descriptor& d = operations_.emplace_back(names.operation);
  d.set(names.x, at(x));
  d.set(names.kernel, at(kernel));
  d.set(names.y, at(y));
  d.set(names.convolution, convolution_of(window));
  d.set(names.alpha, 1.0f);
  d.set(names.beta, accumulate ? 1.0f : 0.0f);
  d.finalize();
  text_ += format("convolve {} {} {} {} {}{} ", static_cast<int>(direction), to_string(window), x, kernel, y,
                  accumulate ? " added" : "");
}

template void Graph::convolve(Convolving, const Window&, int, int, int, bool);
template void Graph::convolve(Convolving, const Window3d&, int, int, int, bool);

void Graph::add(int x, int b, int y) {
  Descriptor mode = pointwise(CUDNN_POINTWISE_ADD);
  mode.finalize();
  add_pointwise(mode, x, b, y);
  text_ += format("add {} {} {} ", x, b, y);
}

void Graph::multiply(int x, int b, int y) {
  Descriptor mode = pointwise(CUDNN_POINTWISE_MUL);
  mode.finalize();
  add_pointwise(mode, x, b, y);
  text_ += format("multiply {} {} {} ", x, b, y);
}

void Graph::relu_gradient(int dy, int y, int dx) {
  Descriptor mode = pointwise(CUDNN_POINTWISE_RELU_BWD);
  mode.finalize();
  Descriptor& d = operations_.emplace_back(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  d.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, mode);
  d.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, at(y));
  d.set(CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, at(dy));
  d.set(CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, at(dx));
  d.finalize();
  text_ += format("relu gradient {} {} {} ", dy, y, dx);
}

void Graph::sum(int x, int sums) {
  Descriptor reduction(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  reduction.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_REDUCE_TENSOR_ADD);
  reduction.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  reduction.finalize();
  Descriptor& d = operations_.emplace_back(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  d.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, reduction);
  d.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, at(x));
  d.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, at(sums));
  d.finalize();
  text_ += format("sum {} {} ", x, sums);
}

void Graph::statistics(int x, int sums, int squares) {
  Descriptor& d = operations_.emplace_back(CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR);
  d.set(CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_GENSTATS_SUM_SQSUM);
  d.set(CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_DATA_FLOAT);
  d.set(CUDNN_ATTR_OPERATION_GENSTATS_XDESC, at(x));
  d.set(CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, at(sums));
  d.set(CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, at(squares));
  d.finalize();
  text_ += format("statistics {} {} {} ", x, sums, squares);
}

void Graph::activate(const ActivationFunction& function, int x, int y) {
  Descriptor mode = pointwise(mode_of(function.kind).value());
  if (function.kind == ActivationKind::leaky_relu) {
    mode.set(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, static_cast<double>(function.slope));
  }
  mode.finalize();
  add_pointwise(mode, x, -1, y);
  text_ += format("{} {} {} ", to_string(function), x, y);
}

void Graph::add_pointwise(const Descriptor& mode, int x, int b, int y) {
  Descriptor& d = operations_.emplace_back(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  d.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, mode);
  d.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, at(x));
  if (b >= 0) d.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, at(b));
  d.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, at(y));
  d.finalize();
}

bool Graph::finalize(const GraphTarget& target) {
  graph_.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, std::span<const Descriptor>(operations_));
  if (target.handle) graph_.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, target.handle);
  return graph_.can_finalize();
}

}  // namespace trainctl::cuda
