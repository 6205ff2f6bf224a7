// Converts layouts of weights.
#include "io/weights/layout.h"

#include <algorithm>
#include <map>

#include "core/graph/graph.h"
#include "core/graph/ops/dense.h"
#include "core/tensor/reversed_axes.h"

namespace trainctl {
namespace {

// Returns the shape of the image or volume that was flattened to x [N, features]; empty if x is neither.
Shape flattened_image(const Graph& graph, const std::map<TensorId, const Op*>& producers, TensorId x) {
  while (graph.tensor(x).type.shape.rank() == 2) {
    const auto found = producers.find(x);
    if (found == producers.end() || found->second->inputs.empty()) return {};
    const Op& op = *found->second;
    const Shape &before = graph.tensor(op.inputs[0]).type.shape, &after = graph.tensor(x).type.shape;
    if (op.def->trait() == OpTrait::alias && before.rank() >= 4) return before.without_front();
    if (before != after || op.get_if<Dense>() != nullptr) return {};
    x = op.inputs[0];
  }
  return {};
}

// The dimensions of a kernel: outputs, inputs, and positions of the window or of a flattened image. PyTorch's layout
// has this order, the logical layout the reverse order.
struct Axes {
  std::int64_t outputs = 1, inputs = 1, positions = 1;
};

bool is_kernel(const WantedTensor& tensor) { return tensor.leaf().ends_with("kernel") && tensor.shape.rank() >= 2; }

// Whether the tensor may be a row of Keras' bias of a gru: `bias` is the first row, `recurrent_bias` the second.
bool is_bias_row(const WantedTensor& tensor) { return tensor.leaf() == "bias" || tensor.leaf() == "recurrent_bias"; }

Axes axes_of(const WantedTensor& tensor) {
  const Shape& shape = tensor.shape;
  Axes axes;
  if (is_kernel(tensor)) axes.outputs = shape.back();
  if (tensor.image.rank() > 0) {
    axes.inputs = tensor.image.back();
    axes.positions = tensor.image.rows();
  } else if (is_kernel(tensor)) {
    axes.inputs = shape[shape.rank() - 2];
    axes.positions = shape.count() / std::max<std::int64_t>(1, axes.outputs * axes.inputs);
  }
  return axes;
}

// Whether the stored shape is that of Keras' kernels and biases with a dimension for heads: merging two neighbouring
// dimensions makes it the expected shape.
bool has_heads(const Shape& stored, const Shape& expected) {
  if (stored.rank() != expected.rank() + 1) return false;
  for (std::int64_t first = 0; first + 1 < stored.rank(); ++first) {
    std::vector<std::int64_t> sizes = stored.sizes();
    sizes[static_cast<std::size_t>(first)] = saturated_multiply(stored[first], stored[first + 1]);
    sizes.erase(sizes.begin() + first + 1);
    if (Shape(std::move(sizes)) == expected) return true;
  }
  return false;
}

// The dimensions of a shape whose size is not 1.
std::vector<std::int64_t> long_dimensions(const Shape& shape) {
  std::vector<std::int64_t> sizes = shape.sizes();
  std::erase(sizes, 1);
  return sizes;
}

// Exchanges the first two gates of a gru in each row: PyTorch has the reset gate first, Keras the update gate.
void order_gates(const WantedTensor& tensor, float* values) {
  if (tensor.gates != 3) return;
  const std::int64_t columns = tensor.shape.back(), units = columns / tensor.gates;
  for (float* row = values; row != values + tensor.shape.count(); row += columns) {
    std::swap_ranges(row, row + units, row + units);
  }
}

}  // namespace

std::vector<WantedTensor> wanted_tensors(const Graph& graph) {
  std::map<std::string, WantedTensor> wanted;
  const auto add = [&](TensorId id) {
    const Tensor& tensor = graph.tensor(id);
    wanted[tensor.name] = {tensor.name, tensor.type.shape};
  };
  for (const GraphParameter& parameter : graph.parameters) add(parameter.tensor);
  for (const GraphStatistic& statistic : graph.statistics) add(statistic.moving);

  std::map<TensorId, const Op*> producers;
  for (const Op& op : graph.ops) {
    for (const TensorId output : op.outputs) producers[output] = &op;
    if (op.inputs.size() < 2) continue;
    const Shape image = flattened_image(graph, producers, op.inputs[0]);
    if (image.rank() == 0) continue;
    for (const TensorId input : op.inputs) {
      const auto found = wanted.find(graph.tensor(input).name);
      const bool counts_values = found != wanted.end() && found->second.shape[0] == image.count();
      if (counts_values) found->second.image = image;
    }
  }
  for (const auto& [name, recurrent] : wanted) {
    if (recurrent.leaf() != "recurrent_kernel") continue;
    for (auto& [other, tensor] : wanted) {
      if (tensor.layer() == recurrent.layer()) tensor.gates = recurrent.shape[1] / recurrent.shape[0];
    }
  }
  std::vector<WantedTensor> list;
  for (auto& [name, tensor] : wanted) list.push_back(std::move(tensor));
  return list;
}

Shape stored_shape(const WantedTensor& tensor, WeightsLayout layout) {
  const Shape& shape = tensor.shape;
  if (layout != WeightsLayout::pytorch || !is_kernel(tensor)) return shape;
  std::vector<std::int64_t> sizes{shape.back(), shape[shape.rank() - 2]};
  sizes.insert(sizes.end(), shape.sizes().begin(), shape.sizes().end() - 2);
  return Shape(std::move(sizes));
}

bool fits(const WantedTensor& tensor, Shape stored, WeightsLayout layout, const StoredPart& part) {
  if (part.count > 1) {
    if (stored.rank() == 0 || stored[0] % part.count != 0) return false;
    stored[0] /= part.count;
  }
  const Shape expected = stored_shape(tensor, layout);
  if (layout == WeightsLayout::keras && is_bias_row(tensor)) {  // (2, values) in Keras' gru
    const bool rows = stored == expected.with_front(2) || has_heads(stored, expected);
    return rows || (stored == expected && tensor.leaf() == "bias");  // the single bias of other layers
  }
  if (stored == expected) return true;
  if (layout == WeightsLayout::keras && tensor.leaf() == "kernel" && has_heads(stored, expected)) return true;
  if (layout == WeightsLayout::keras && stored.rank() == 0) return expected.count() == 1;  // a number
  if (layout == WeightsLayout::keras && tensor.leaf() == "gamma") {                        // (channels) in LayerScale
    return stored == Shape{expected.count()} && expected == stored.with_front(1);
  }
  if (layout == WeightsLayout::keras && tensor.leaf() == "depthwise_kernel") {
    // (height, width, channels, multiplier), of sequences (length, channels, multiplier)
    const int window = expected.rank() - 2;
    bool same = stored.rank() == expected.rank();
    for (int i = 0; same && i < window; ++i) same = stored[i] == expected[i];
    return same && saturated_multiply(stored[window], stored[window + 1]) == expected.back();
  }
  if (layout != WeightsLayout::pytorch) return false;
  // Modules have slopes [channels], class tokens [1, 1, channels], positions [1, positions, channels] and factors of
  // channels [channels] or [channels, 1, 1].
  if (!is_kernel(tensor)) return long_dimensions(stored) == long_dimensions(expected);
  if (expected.rank() != 2 || stored.rank() < 4) return false;
  // The file may have a convolution with a window of the whole image instead of a dense layer.
  const Shape& image = tensor.image;
  if (image.rank() == 0) return stored == Shape{expected[0], expected[1], 1, 1};
  std::vector<std::int64_t> window{expected[0], image.back()};
  window.insert(window.end(), image.sizes().begin(), image.sizes().end() - 1);
  return stored == Shape(std::move(window));
}

void to_logical(const WantedTensor& tensor, WeightsLayout layout, const float* stored, float* to) {
  if (layout != WeightsLayout::pytorch) {
    const bool second_row = layout == WeightsLayout::keras && tensor.leaf() == "recurrent_bias";
    std::copy_n(stored + (second_row ? tensor.shape.count() : 0), tensor.shape.count(), to);
    return;
  }
  const auto [outputs, inputs, positions] = axes_of(tensor);
  if (outputs * inputs * positions != tensor.shape.count()) {  // a vector, which is copied unchanged
    std::copy_n(stored, tensor.shape.count(), to);
    return order_gates(tensor, to);
  }
  reverse_axes(outputs, inputs, positions, stored, to);
  order_gates(tensor, to);
}

}  // namespace trainctl
