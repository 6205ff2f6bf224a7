// Checks and runs operation graphs of the emulated cuDNN.
#include "test/emulated_gpu/cudnn_graph.h"

#include <array>
#include <cmath>
#include <optional>
#include <set>

namespace emulated::cudnn {
namespace {

[[noreturn]] void refuse(const std::string& why, cudnnStatus_t status = CUDNN_STATUS_BAD_PARAM) {
  throw Refusal{status, why};
}

Number number(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_FLOAT:
      return Number::f32;
    case CUDNN_DATA_BFLOAT16:
      return Number::bf16;
    case CUDNN_DATA_HALF:
      return Number::f16;
    default:
      refuse("a data type that is not emulated", CUDNN_STATUS_NOT_SUPPORTED);
  }
}

struct Names {
  cudnnBackendAttributeName_t x, w, y, how, alpha, beta;
};
constexpr Names names_of(Direction direction) {
  switch (direction) {
    case Direction::input_gradient:
      return {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case Direction::weight_gradient:
      return {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
    default:
      return {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
  }
}

std::optional<Direction> direction_of(const Descriptor& operation) {
  switch (operation.type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      return Direction::forward;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return Direction::input_gradient;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return Direction::weight_gradient;
    default:
      return std::nullopt;
  }
}

const Names& names(const Descriptor& operation) {
  static const std::array all{names_of(Direction::forward), names_of(Direction::input_gradient),
                              names_of(Direction::weight_gradient)};
  return all[static_cast<std::size_t>(direction_of(operation).value())];
}

Tensor tensor(const Descriptor& operation, cudnnBackendAttributeName_t name) { return Tensor(operation.child(name)); }

float factor(const Descriptor& operation, cudnnBackendAttributeName_t name, float otherwise) {
  const auto found = operation.attributes.find(name);
  if (found == operation.attributes.end()) return otherwise;
  if (found->second.type == CUDNN_TYPE_DOUBLE) return static_cast<float>(operation.value<double>(name));
  return operation.value<float>(name);
}

// read_by() returns the tensors that an operation reads, written_by() the one that it writes.
std::vector<Tensor> read_by(const Descriptor& op) {
  if (const auto direction = direction_of(op)) {
    const Convolution c(op);
    if (*direction == Direction::forward) return {c.x, c.w};
    return *direction == Direction::input_gradient ? std::vector{c.w, c.y} : std::vector{c.x, c.y};
  }
  std::vector<Tensor> inputs{tensor(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC)};
  if (op.has(CUDNN_ATTR_OPERATION_POINTWISE_BDESC)) inputs.push_back(tensor(op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC));
  return inputs;
}
Tensor written_by(const Descriptor& op) {
  const auto direction = direction_of(op);
  if (!direction) return tensor(op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
  const Convolution c(op);
  return *direction == Direction::forward ? c.y : *direction == Direction::input_gradient ? c.x : c.w;
}

using Values = std::vector<float>;  // packed, in the order of the sizes

template <class Visit>
void each(const Tensor& t, const Visit& visit) {
  std::int64_t index = 0;
  for (std::int64_t n = 0; n < t.sizes[0]; ++n) {
    for (std::int64_t c = 0; c < t.sizes[1]; ++c) {
      for (std::int64_t d = 0; d < t.sizes[2]; ++d) {
        for (std::int64_t h = 0; h < t.sizes[3]; ++h) {
          const std::int64_t row = n * t.strides[0] + c * t.strides[1] + d * t.strides[2] + h * t.strides[3];
          for (std::int64_t w = 0; w < t.sizes[4]; ++w) visit(index++, row + w * t.strides[4]);
        }
      }
    }
  }
}

Values read(const Tensor& t, const void* memory) {
  Values values(static_cast<std::size_t>(t.count()));
  each(t, [&](std::int64_t i, std::int64_t at) { values[static_cast<std::size_t>(i)] = load(memory, t.type, at); });
  return values;
}
void write(const Tensor& t, const Values& values, void* memory) {
  each(t, [&](std::int64_t i, std::int64_t at) { store(memory, t.type, at, values[static_cast<std::size_t>(i)]); });
}

// Adds the products of one element of the kernel, `weight` at (index along each axis) in `at`, with one plane of y and
// the planes of x that it reads. `x` and `y` are the volumes of one channel of a sample.
void convolve_plane(const Convolution& c, const std::array<std::int64_t, 3>& at, float& weight, float* x, float* y) {
  const auto input = [&](std::size_t axis, std::int64_t output) {
    const std::int64_t position = output * c.strides[axis] + at[axis] * c.dilation[axis] - c.before[axis];
    return position < c.x.sizes[axis + 2] ? position : -1;
  };
  for (std::int64_t o = 0; o < c.y.sizes[2]; ++o) {
    const std::int64_t slice = input(0, o);
    if (slice < 0) continue;
    for (std::int64_t p = 0; p < c.y.sizes[3]; ++p) {
      const std::int64_t row = input(1, p);
      if (row < 0) continue;
      float* x_row = x + (slice * c.x.sizes[3] + row) * c.x.sizes[4];
      float* y_row = y + (o * c.y.sizes[3] + p) * c.y.sizes[4];
      for (std::int64_t q = 0; q < c.y.sizes[4]; ++q) {
        const std::int64_t column = input(2, q);
        if (column < 0) continue;
        if (c.direction == Direction::forward) y_row[q] += weight * x_row[column];
        if (c.direction == Direction::input_gradient) x_row[column] += weight * y_row[q];
        if (c.direction == Direction::weight_gradient) weight += x_row[column] * y_row[q];
      }
    }
  }
}

// Adds all products of a convolution to the one of its three tensors that it computes.
void convolve(const Convolution& c, Values& x, Values& w, Values& y, bool backwards) {
  const std::int64_t groups = c.x.sizes[1] / c.w.sizes[1], inputs = c.w.sizes[1], outputs = c.y.sizes[1] / groups;
  const std::int64_t x_volume = c.x.count() / (c.x.sizes[0] * c.x.sizes[1]);
  const std::int64_t planes = c.y.sizes[0] * c.y.sizes[1], y_volume = c.y.count() / planes;
  const std::int64_t window = c.w.sizes[2] * c.w.sizes[3] * c.w.sizes[4];
  for (std::int64_t step = 0; step < planes; ++step) {
    const std::int64_t plane = backwards ? planes - 1 - step : step;
    const std::int64_t n = plane / c.y.sizes[1], out = plane % c.y.sizes[1], first = out / outputs * inputs;
    for (std::int64_t in = 0; in < inputs; ++in) {
      for (std::int64_t k = 0; k < window; ++k) {
        const std::array<std::int64_t, 3> at{k / c.w.sizes[4] / c.w.sizes[3], k / c.w.sizes[4] % c.w.sizes[3],
                                             k % c.w.sizes[4]};
        convolve_plane(c, at, w[static_cast<std::size_t>((out * inputs + in) * window + k)],
                       &x[static_cast<std::size_t>((n * c.x.sizes[1] + first + in) * x_volume)],
                       &y[static_cast<std::size_t>(plane * y_volume)]);
      }
    }
  }
}

float apply(const Descriptor& mode, float x, float b) {
  switch (mode.value<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE)) {
    case CUDNN_POINTWISE_ADD:
      return x + b;
    case CUDNN_POINTWISE_MUL:
      return x * b;
    case CUDNN_POINTWISE_RELU_FWD:
      return x > 0 ? x : x * factor(mode, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, 0);
    case CUDNN_POINTWISE_TANH_FWD:
      return std::tanh(x);
    case CUDNN_POINTWISE_SIGMOID_FWD:
      return 1 / (1 + std::exp(-x));
    case CUDNN_POINTWISE_GELU_FWD:
      return x * 0.5f * (1 + std::erf(x * 0.70710678f));
    case CUDNN_POINTWISE_SWISH_FWD:
      return x / (1 + std::exp(-x * factor(mode, CUDNN_ATTR_POINTWISE_SWISH_BETA, 1)));
    default:
      refuse("a pointwise mode that is not emulated", CUDNN_STATUS_NOT_SUPPORTED);
  }
}

bool is_binary(const Descriptor& mode) {
  const auto which = mode.value<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
  return which == CUDNN_POINTWISE_ADD || which == CUDNN_POINTWISE_MUL;
}

// Applies a pointwise operation. Each dimension of b is that of x, or 1.
Values pointwise(const Descriptor& op, const Tensor& y, const Values& x, const Tensor* b_tensor, const Values* b) {
  const Descriptor& mode = op.child(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
  Values result(x.size());
  Tensor index = y;
  for (std::size_t d = 0; d < index.sizes.size(); ++d) {
    std::int64_t stride = 1;
    for (std::size_t k = d + 1; b_tensor != nullptr && k < index.sizes.size(); ++k) stride *= b_tensor->sizes[k];
    index.strides[d] = b_tensor != nullptr && b_tensor->sizes[d] > 1 ? stride : 0;
  }
  each(index, [&](std::int64_t i, std::int64_t at) {
    const auto k = static_cast<std::size_t>(i);
    result[k] = apply(mode, x[k], b != nullptr ? (*b)[static_cast<std::size_t>(at)] : 0.0f);
  });
  return result;
}

const std::vector<std::shared_ptr<const Descriptor>>& operations_of(const Descriptor& graph) {
  return graph.children.at(CUDNN_ATTR_OPERATIONGRAPH_OPS);
}

}  // namespace

Tensor::Tensor(const Descriptor& d)
    : type(number(d.value<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE))),
      sizes(d.values<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS)),
      strides(d.values<std::int64_t>(CUDNN_ATTR_TENSOR_STRIDES)),
      id(d.value<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID)),
      alignment(d.value<std::int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT)),
      is_virtual(d.value_or<unsigned char>(CUDNN_ATTR_TENSOR_IS_VIRTUAL, 0) != 0) {
  if (sizes.size() != strides.size()) refuse("a tensor must have as many strides as dimensions");
  if (sizes.size() != 4 && sizes.size() != 5) {
    refuse("tensors of other than 4 or 5 dimensions are not emulated", CUDNN_STATUS_NOT_SUPPORTED);
  }
  if (sizes.size() == 4) {
    sizes.insert(sizes.begin() + 2, 1);
    strides.insert(strides.begin() + 2, 0);
  }
  for (std::int64_t size : sizes) {
    if (size < 1) refuse("a dimension must be positive");
  }
  if (alignment <= 0 || alignment % static_cast<std::int64_t>(size_of(type)) != 0) {
    refuse("the alignment must be a multiple of the element's size");
  }
}

std::int64_t Tensor::count() const {
  std::int64_t product = 1;
  for (std::int64_t size : sizes) product *= size;
  return product;
}
std::int64_t Tensor::bytes() const {
  std::int64_t last = 0;
  for (std::size_t d = 0; d < sizes.size(); ++d) last += (sizes[d] - 1) * strides[d];
  return (last + 1) * static_cast<std::int64_t>(size_of(type));
}

Convolution::Convolution(const Descriptor& op)
    : direction(direction_of(op).value()),
      x(op.child(names(op).x)),
      w(op.child(names(op).w)),
      y(op.child(names(op).y)),
      alpha(factor(op, names(op).alpha, 1)),
      beta(factor(op, names(op).beta, 0)) {
  const Descriptor& how = op.child(names(op).how);
  before = how.values<std::int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  after = how.values<std::int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
  strides = how.values<std::int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  dilation = how.values<std::int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS);
  if (strides.size() == 3) return;
  for (std::vector<std::int64_t>* padding : {&before, &after}) padding->insert(padding->begin(), 0);
  for (std::vector<std::int64_t>* steps : {&strides, &dilation}) steps->insert(steps->begin(), 1);
}

void Convolution::check() const {
  if (x.sizes[0] != y.sizes[0]) refuse("x and y must have the same number of images");
  if (x.sizes[1] % w.sizes[1] != 0 || w.sizes[0] != y.sizes[1]) refuse("the channels of x, w and y do not fit");
  if (y.sizes[1] % (x.sizes[1] / w.sizes[1]) != 0) refuse("output channels must be a multiple of the groups");
  for (std::size_t d = 0; d < 3; ++d) {
    const std::int64_t extent = (w.sizes[d + 2] - 1) * dilation[d] + 1;
    const std::int64_t slack = x.sizes[d + 2] + before[d] + after[d] - extent;
    if (slack < 0 || slack / strides[d] + 1 != y.sizes[d + 2])
      refuse("the output's extent does not follow from the input's");
  }
}

void check_graph(const Descriptor& graph) {
  if (!graph.children.contains(CUDNN_ATTR_OPERATIONGRAPH_OPS)) refuse("a graph must have operations");
  std::set<std::int64_t> written;
  bool convolved = false;
  for (const auto& op : operations_of(graph)) {
    for (const Tensor& input : read_by(*op)) {
      if (input.is_virtual && !written.contains(input.id)) {
        refuse("a virtual tensor that no earlier operation writes", CUDNN_STATUS_NOT_SUPPORTED);
      }
    }
    if (direction_of(*op)) {
      if (convolved) refuse("two convolutions in a graph", CUDNN_STATUS_NOT_SUPPORTED);
      convolved = true;
      const Convolution c(*op);
      if (c.direction != Direction::forward && operations_of(graph).size() > 1) {
        refuse("operations after a gradient are not emulated", CUDNN_STATUS_NOT_SUPPORTED);
      }
      if (c.beta != 0 && c.direction != Direction::input_gradient) {
        refuse("only input gradients can be added to existing values", CUDNN_STATUS_NOT_SUPPORTED);
      }
    }
    if (!written.insert(written_by(*op).id).second) refuse("two operations write one tensor");
  }
}

std::vector<Tensor> tensors_in_memory(const Descriptor& graph) {
  std::vector<Tensor> all;
  const auto add = [&](const Tensor& t) {
    if (!t.is_virtual) all.push_back(t);
  };
  for (const auto& op : operations_of(graph)) {
    for (const Tensor& input : read_by(*op)) add(input);
    add(written_by(*op));
  }
  return all;
}

void run_graph(const Descriptor& graph, const std::map<std::int64_t, void*>& memory, bool backwards) {
  std::map<std::int64_t, Values> intermediates;
  const auto value_of = [&](const Tensor& t) {
    return t.is_virtual ? intermediates.at(t.id) : read(t, memory.at(t.id));
  };
  for (const auto& op : operations_of(graph)) {
    const Tensor target = written_by(*op);
    Values result;
    if (const auto direction = direction_of(*op)) {
      const Convolution c(*op);
      const auto operand = [&](const Tensor& t) {
        return t.id == target.id ? Values(static_cast<std::size_t>(t.count())) : value_of(t);
      };
      Values x = operand(c.x), w = operand(c.w), y = operand(c.y);
      convolve(c, x, w, y, backwards);
      result = *direction == Direction::forward ? y : *direction == Direction::input_gradient ? x : w;
      for (float& value : result) value *= c.alpha;
      if (c.beta != 0) {
        const Values before = value_of(target);
        for (std::size_t i = 0; i < result.size(); ++i) result[i] += c.beta * before[i];
      }
    } else {
      const Tensor x = tensor(*op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
      const bool binary = is_binary(op->child(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR));
      const std::optional<Tensor> b =
          binary ? std::optional(tensor(*op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC)) : std::nullopt;
      const Values b_values = b ? value_of(*b) : Values{};
      result = pointwise(*op, target, value_of(x), b ? &*b : nullptr, b ? &b_values : nullptr);
    }
    if (target.is_virtual) {
      intermediates[target.id] = std::move(result);
    } else {
      write(target, result, memory.at(target.id));
    }
  }
}

}  // namespace emulated::cudnn
