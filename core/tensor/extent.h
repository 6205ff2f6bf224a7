// The part of a tensor that a rank holds: all of it, a box of it, a range of the flattened tensor, or a range of a
// box's elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/tensor/shape.h"
#include "core/tensor/view.h"

namespace trainctl {

// An extent's elements lie in memory one behind the other, in the tensor's row-major order. Extents that hold the same
// elements in the same shape are equal: a box or range that holds everything is the whole tensor, a box of a vector is
// a range, and a range of a box is the box where it holds all of it, or a range of the tensor where its elements lie
// side by side there.
class TensorExtent {
 public:
  enum class Kind { whole, box, range, box_range };

  TensorExtent() = default;  // the whole tensor, whatever its shape

  // Elements [offsets[i], offsets[i] + sizes[i]) along every dimension i, all within the shape.
  static TensorExtent box(const Shape& shape, std::vector<std::int64_t> offsets, std::vector<std::int64_t> sizes);
  // Elements [offset, offset + count) of the flattened tensor, all within it.
  static TensorExtent range(const Shape& shape, std::int64_t offset, std::int64_t count);
  // Elements [offset, offset + count) of those that `outer` holds, in their order.
  static TensorExtent range(const Shape& shape, const TensorExtent& outer, std::int64_t offset, std::int64_t count);

  Kind kind() const { return kind_; }
  bool is_whole() const { return kind_ == Kind::whole; }
  // One entry for each dimension of a box, that of which a range is held included; one entry for a range of the
  // tensor, none for the whole tensor.
  const std::vector<std::int64_t>& offsets() const { return offsets_; }
  const std::vector<std::int64_t>& sizes() const { return sizes_; }

  // Of a range of a box: elements [first, first + count) of the box in row-major order.
  struct InBox {
    std::int64_t first = 0;
    std::int64_t count = 0;
    bool operator==(const InBox&) const = default;
  };
  const std::optional<InBox>& in_box() const { return in_box_; }

  // Shape of what the extent holds of a tensor of this shape: a box's sizes, or [count] for a range.
  Shape shape(const Shape& tensor) const {
    if (in_box_) return {in_box_->count};
    return is_whole() ? tensor : Shape(sizes_);
  }
  std::int64_t count(const Shape& tensor) const { return shape(tensor).count(); }

  bool operator==(const TensorExtent&) const = default;

 private:
  TensorExtent(Kind kind, std::vector<std::int64_t> offsets, std::vector<std::int64_t> sizes);

  Kind kind_ = Kind::whole;
  std::vector<std::int64_t> offsets_;
  std::vector<std::int64_t> sizes_;
  std::optional<InBox> in_box_;
};

// "whole", "[0:3, 8:16]" for a box, "elements [100:200]" for a range, "elements [5:9] of [0:3, 8:16]".
std::string to_string(const TensorExtent& extent);

// Copies the elements that two extents of one tensor have in common from `source` to `target`; returns how many
// elements it copied. Both views have the same dtype, and as many elements as their extents.
std::int64_t copy_common(const Shape& tensor, const TensorExtent& from, const View& source, const TensorExtent& to,
                         const View& target);

// An element of a tensor that does not lie in exactly one of several extents.
struct CoverageProblem {
  std::int64_t element = 0;  // of the flattened tensor
  bool in_none = false;      // else the element lies in both extents `first` and `second`
  std::size_t first = 0;
  std::size_t second = 0;
};

// The first such element; nothing where the extents hold every element of the tensor exactly once. Takes time in
// proportion to the number of contiguous runs in the extents.
std::optional<CoverageProblem> find_coverage_problem(const Shape& tensor, std::span<const TensorExtent> extents);

}  // namespace trainctl
