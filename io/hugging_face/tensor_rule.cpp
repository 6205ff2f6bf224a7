// Converts the layouts of tensors.
#include "io/hugging_face/tensor_rule.h"

#include <algorithm>

#include "core/tensor/reversed_axes.h"

namespace trainctl {
namespace {

// The number of positions of a convolution's window; 1 for a matrix.
std::int64_t positions_of(const Shape& stored) { return stored.rank() == 4 ? stored[2] * stored[3] : 1; }

}  // namespace

Shape TensorRule::part_shape() const {
  std::vector<std::int64_t> sizes = shape.sizes();
  switch (layout) {
    case StoredLayout::same:
      break;
    case StoredLayout::transposed:
      std::reverse(sizes.begin(), sizes.end());
      break;
    case StoredLayout::convolution:
      sizes = {sizes[2], sizes[3], sizes[1], sizes[0]};
      break;
    case StoredLayout::batched:
      sizes.erase(sizes.begin());
      break;
  }
  sizes.back() /= static_cast<std::int64_t>(parts.size());
  return Shape(std::move(sizes));
}

void TensorRule::to_network(std::size_t part, const float* stored, float* to) const {
  if (layout == StoredLayout::transposed || layout == StoredLayout::convolution) {
    return reverse_axes(shape[0], shape[1], positions_of(shape), stored, to);
  }
  const std::int64_t all = shape.back(), columns = all / static_cast<std::int64_t>(parts.size()),
                     begin = static_cast<std::int64_t>(part) * columns;
  for (std::int64_t row = 0; row < shape.count() / all; ++row) {
    std::copy_n(stored + row * all + begin, columns, to + row * columns);
  }
}

void TensorRule::to_stored(std::span<const float* const> values, float* to) const {
  if (layout == StoredLayout::transposed || layout == StoredLayout::convolution) {
    return reverse_axes(positions_of(shape), shape[1], shape[0], values[0], to);
  }
  const std::int64_t all = shape.back(), columns = all / static_cast<std::int64_t>(parts.size());
  for (std::int64_t row = 0; row < shape.count() / all; ++row) {
    for (std::size_t part = 0; part < parts.size(); ++part) {
      std::copy_n(values[part] + row * columns, columns, to + row * all + static_cast<std::int64_t>(part) * columns);
    }
  }
}

void add_vector(const std::string& stored, std::int64_t values, const std::string& parameter,
                std::vector<TensorRule>& rules) {
  rules.push_back({stored, {values}, StoredLayout::same, {parameter}});
}

void add_dense(const std::string& stored, std::int64_t outputs, std::int64_t inputs, const std::string& layer,
               std::vector<TensorRule>& rules) {
  rules.push_back({stored + ".weight", {outputs, inputs}, StoredLayout::transposed, {layer + "/kernel"}});
  add_vector(stored + ".bias", outputs, layer + "/bias", rules);
}

void add_norm(const std::string& stored, std::int64_t width, const std::string& layer, std::vector<TensorRule>& rules) {
  add_vector(stored + ".weight", width, layer + "/gamma", rules);
  add_vector(stored + ".bias", width, layer + "/beta", rules);
}

}  // namespace trainctl
