// Tensors in random shards on several ranks: the shards of each rank depend on a seed only, and their values on names.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "core/exec/interfaces/snapshot.h"

namespace trainctl::test {

struct ShapeOf {
  std::string name;
  Shape shape;
};

// Sorted by the bytes of the names.
inline std::vector<ShapeOf> test_tensors(const std::string& prefix = "") {
  return {{prefix + "bn/moving_mean", {5}},    {prefix + "conv/kernel", {3, 3, 2, 6}}, {prefix + "dense/bias", {1}},
          {prefix + "dense/kernel", {45, 10}}, {prefix + "head/kernel", {8, 12}},      {prefix + "scalar", Shape()}};
}

inline float value_of(const std::string& name, std::int64_t element) {
  const auto key = static_cast<std::uint32_t>(std::hash<std::string>()(name));
  return uniform01(philox({static_cast<std::uint32_t>(element), key, 0, 0}, {7, 11})[0]) - 0.5f;
}

// Every rank's extent of a tensor, empty for ranks that hold nothing of it. Replicas hold equal extents.
inline std::vector<std::optional<TensorExtent>> random_extents(const Shape& shape, int ranks, std::mt19937& random) {
  const auto below = [&](std::int64_t n) { return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random); };
  std::vector<std::optional<TensorExtent>> extents(static_cast<std::size_t>(ranks));
  const int parts = static_cast<int>(1 + below(ranks));
  const auto cuts = [&](std::int64_t size) {
    std::vector<std::int64_t> at = {0, size};
    for (int i = 1; i < parts; ++i) at.push_back(below(size + 1));
    std::sort(at.begin(), at.end());
    return at;
  };
  const int shift = static_cast<int>(below(ranks));
  const auto assign = [&](const auto& extent_of_part) {
    for (int rank = 0; rank < ranks; ++rank)
      extents[static_cast<std::size_t>(rank)] = extent_of_part((rank + shift) % parts);
  };
  const std::int64_t kind = below(5);
  if (kind == 0) {  // one stage of a pipeline holds all of it
    extents[static_cast<std::size_t>(shift)] = TensorExtent();
  } else if (kind == 1 || shape.rank() == 0) {
    const auto at = cuts(shape.count());
    assign([&](int part) { return TensorExtent::range(shape, at[part], at[part + 1] - at[part]); });
  } else {
    const auto axis = static_cast<std::size_t>(below(shape.rank()));
    const auto at = cuts(shape.sizes()[axis]);
    assign([&](int part) {
      std::vector<std::int64_t> offsets(shape.sizes().size()), sizes = shape.sizes();
      offsets[axis] = at[part];
      sizes[axis] = at[part + 1] - at[part];
      return TensorExtent::box(shape, offsets, sizes);
    });
    // Of two replicas of a part, the first holds one half of it and the second the other half, as with sharded updates.
    if (kind == 4 && ranks >= 2 * parts) {
      for (int rank = 0; rank < ranks; ++rank) {
        TensorExtent& extent = *extents[static_cast<std::size_t>(rank)];
        const std::int64_t count = extent.count(shape), half = (count + 1) / 2;
        const bool second = rank / parts % 2 == 1;
        extent = TensorExtent::range(shape, extent, second ? half : 0, second ? count - half : half);
      }
    }
  }
  return extents;
}

// Whether an extent holds an element, computed from coordinates.
inline bool holds(const TensorExtent& extent, const Shape& shape, std::int64_t element) {
  if (extent.is_whole()) return true;
  const auto within = [&](std::size_t i, std::int64_t at) {
    return at >= extent.offsets()[i] && at < extent.offsets()[i] + extent.sizes()[i];
  };
  if (extent.kind() == TensorExtent::Kind::range) return within(0, element);
  std::int64_t index = 0, stride = 1;  // index of the element within the box
  for (std::size_t axis = shape.sizes().size(); axis-- > 0; element /= shape.sizes()[axis]) {
    const std::int64_t at = element % shape.sizes()[axis];
    if (!within(axis, at)) return false;
    index += (at - extent.offsets()[axis]) * stride;
    stride *= extent.sizes()[axis];
  }
  const auto& part = extent.in_box();
  return !part || (index >= part->first && index < part->first + part->count);
}

// The shards of test_tensors(prefix) that one rank of several holds, chosen by the seed.
class RankTensors {
 public:
  RankTensors(const std::string& prefix, unsigned seed, int rank, int ranks) {
    std::mt19937 random(seed);
    for (const ShapeOf& one : test_tensors(prefix)) {
      const auto extent = random_extents(one.shape, ranks, random)[static_cast<std::size_t>(rank)];
      if (!extent) continue;
      const std::int64_t count = extent->count(one.shape);
      memory_.push_back(std::make_unique<float[]>(static_cast<std::size_t>(count)));
      std::fill_n(memory_.back().get(), count, -7.0f);
      tensors_.push_back({one.name, one.shape, {memory_.back().get(), DType::float32, count}, *extent});
    }
  }

  const std::vector<NamedTensor>& tensors() const { return tensors_; }

  void fill() {
    each_element([](float& value, float expected) { value = expected; });
  }

  // The name of a tensor with a wrong value; empty if all values are right.
  std::string wrong() {
    std::string found;
    for (const NamedTensor& tensor : tensors_) {
      float* next = tensor.view.as<float>();
      for (std::int64_t i = 0; i < tensor.shape.count(); ++i) {
        if (holds(tensor.extent, tensor.shape, i) && *next++ != value_of(tensor.name, i)) found = tensor.name;
      }
    }
    return found;
  }

 private:
  template <class Work>
  void each_element(const Work& work) {
    for (const NamedTensor& tensor : tensors_) {
      float* next = tensor.view.as<float>();
      for (std::int64_t i = 0; i < tensor.shape.count(); ++i) {
        if (holds(tensor.extent, tensor.shape, i)) work(*next++, value_of(tensor.name, i));
      }
    }
  }

  std::vector<NamedTensor> tensors_;
  std::vector<std::unique_ptr<float[]>> memory_;
};

}  // namespace trainctl::test
