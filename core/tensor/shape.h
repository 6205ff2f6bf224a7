// The shape of a tensor: the sizes of its dimensions, outermost first.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "core/base/checked.h"

namespace trainctl {

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> sizes) : sizes_(sizes) {}
  explicit Shape(std::vector<std::int64_t> sizes) : sizes_(std::move(sizes)) {}

  std::int64_t rank() const { return static_cast<std::int64_t>(sizes_.size()); }
  std::int64_t operator[](std::int64_t axis) const { return sizes_[static_cast<std::size_t>(axis)]; }
  std::int64_t& operator[](std::int64_t axis) { return sizes_[static_cast<std::size_t>(axis)]; }
  std::int64_t back() const { return sizes_.back(); }
  const std::vector<std::int64_t>& sizes() const { return sizes_; }

  // The number of elements; 1 for the empty shape of a scalar. Throws OverflowError if it exceeds 64 bits.
  std::int64_t count() const {
    std::int64_t product = 1;
    for (std::int64_t size : sizes_) product = checked_multiply(product, size);
    return product;
  }

  // This shape with an additional first dimension: turns the shape of a sample into the shape of a batch.
  Shape with_front(std::int64_t size) const {
    std::vector<std::int64_t> sizes{size};
    sizes.insert(sizes.end(), sizes_.begin(), sizes_.end());
    return Shape(std::move(sizes));
  }
  // This shape with an additional last dimension.
  Shape with_appended(std::int64_t size) const {
    std::vector<std::int64_t> sizes = sizes_;
    sizes.push_back(size);
    return Shape(std::move(sizes));
  }
  // This shape with its last dimension replaced.
  Shape with_back(std::int64_t size) const {
    Shape shape = *this;
    shape.sizes_.back() = size;
    return shape;
  }
  // The product of all dimensions except the last: the number of rows if the tensor is viewed as a matrix with rows
  // along the last dimension. Throws OverflowError if it exceeds 64 bits.
  std::int64_t rows() const {
    std::int64_t product = 1;
    for (std::size_t i = 0; i + 1 < sizes_.size(); ++i) product = checked_multiply(product, sizes_[i]);
    return product;
  }
  // This shape without its first dimension: turns the shape of a batch into the shape of a sample.
  Shape without_front() const { return Shape(std::vector<std::int64_t>(sizes_.begin() + 1, sizes_.end())); }

  bool operator==(const Shape&) const = default;

 private:
  std::vector<std::int64_t> sizes_;
};

// Returns text such as "64x28x28x1"; "scalar" for the empty shape.
inline std::string to_string(const Shape& shape) {
  if (shape.rank() == 0) return "scalar";
  std::string text;
  for (std::int64_t size : shape.sizes()) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

}  // namespace trainctl
