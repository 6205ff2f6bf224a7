// Merges the dimensions of broadcast inputs.
#include "core/graph/ops/elementwise/broadcast.h"

#include <algorithm>

namespace trainctl {
namespace {

// The strides of an input for all dimensions of `to`.
std::vector<std::int64_t> broadcast_strides(const Shape& x, const Shape& to) {
  std::vector<std::int64_t> strides(static_cast<std::size_t>(to.rank()), 0);
  std::int64_t stride = 1;
  for (std::int64_t i = 0; i < x.rank(); ++i) {
    const std::int64_t size = x[x.rank() - 1 - i];
    if (size != 1) strides[static_cast<std::size_t>(to.rank() - 1 - i)] = stride;
    stride *= size;
  }
  return strides;
}

}  // namespace

std::int64_t BroadcastView::count() const {
  std::int64_t product = 1;
  for (const std::int64_t size : sizes) product *= size;
  return product;
}

bool BroadcastView::is_flat() const {
  return sizes.size() == 1 && std::all_of(strides.begin(), strides.end(), [](const auto& of) { return of[0] == 1; });
}

BroadcastView broadcast_view(std::span<const TensorType> inputs, const Shape& to) {
  std::vector<std::vector<std::int64_t>> strides;
  for (const TensorType& x : inputs) strides.push_back(broadcast_strides(x.shape, to));
  BroadcastView view;
  view.strides.resize(inputs.size());
  for (std::int64_t axis = 0; axis < to.rank(); ++axis) {
    const auto d = static_cast<std::size_t>(axis);
    if (to[axis] == 1) continue;
    bool merges = !view.sizes.empty();
    for (std::size_t i = 0; i < inputs.size() && merges; ++i) {
      merges = view.strides[i].back() == strides[i][d] * to[axis];
    }
    if (!merges) view.sizes.push_back(1);
    view.sizes.back() *= to[axis];
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!merges) view.strides[i].push_back(0);
      view.strides[i].back() = strides[i][d];
    }
  }
  if (view.sizes.empty()) {  // one element
    view.sizes = {1};
    for (auto& of : view.strides) of = {0};
  }
  return view;
}

}  // namespace trainctl
