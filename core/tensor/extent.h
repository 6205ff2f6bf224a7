// The elements of a tensor that a rank holds: the whole tensor, a box, a range of the flattened tensor, or a range of
// the elements of a box.
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

// The elements of an extent are stored consecutively in memory, in the row-major order of the tensor. Each extent has
// one canonical representation, so that extents with the same elements and shape are equal: a box or range of all
// elements is the whole tensor; a box of a vector is a range; a range of a box is the box if it contains all its
// elements, or a range of the tensor if its elements are consecutive in the tensor.
class TensorExtent {
 public:
  enum class Kind { whole, box, range, box_range };

  TensorExtent() = default;  // the whole tensor, for any shape

  // Elements [offsets[i], offsets[i] + sizes[i]) along every dimension i, all within the shape.
  static TensorExtent box(const Shape& shape, std::vector<std::int64_t> offsets, std::vector<std::int64_t> sizes);
  // Elements [offset, offset + count) of the flattened tensor, all within it.
  static TensorExtent range(const Shape& shape, std::int64_t offset, std::int64_t count);
  // Elements [offset, offset + count) of the elements of `outer`, in their order.
  static TensorExtent range(const Shape& shape, const TensorExtent& outer, std::int64_t offset, std::int64_t count);

  Kind kind() const { return kind_; }
  bool is_whole() const { return kind_ == Kind::whole; }
  // A box, or a range of a box, has one entry for each dimension of the box. A range of the tensor has one entry, and
  // the whole tensor has none.
  const std::vector<std::int64_t>& offsets() const { return offsets_; }
  const std::vector<std::int64_t>& sizes() const { return sizes_; }

  // For a range of a box: elements [first, first + count) of the box in row-major order.
  struct InBox {
    std::int64_t first = 0;
    std::int64_t count = 0;
    bool operator==(const InBox&) const = default;
  };
  const std::optional<InBox>& in_box() const { return in_box_; }

  // The shape of the extent in a tensor of this shape: the sizes of a box, or [count] for a range.
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

// Returns text such as "whole", "[0:3, 8:16]" for a box, "elements [100:200]" for a range, or "elements [5:9] of [0:3,
// 8:16]" for a range of a box.
std::string to_string(const TensorExtent& extent);

// Copies the elements that are in both extents of a tensor from `source` to `target`; returns the number of elements
// copied. The views have the same dtype and the sizes of their extents.
std::int64_t copy_common(const Shape& tensor, const TensorExtent& from, const View& source, const TensorExtent& to,
                         const View& target);

// An element of a tensor that no extent contains, or that more than one extent contains.
struct CoverageProblem {
  std::int64_t element = 0;  // index in the flattened tensor
  bool in_none = false;      // no extent contains the element; if false, extents `first` and `second` contain it
  std::size_t first = 0;
  std::size_t second = 0;
};

// Returns the first element with a coverage problem; empty if every element of the tensor is in exactly one extent. The
// running time is proportional to the number of contiguous runs in the extents.
std::optional<CoverageProblem> find_coverage_problem(const Shape& tensor, std::span<const TensorExtent> extents);

// Chooses extents of which every element of the tensor is in exactly one. The extents are those of several replicas:
// each replica has cut the tensor, or the same boxes of it, into extents, but not at the same elements. Returns the
// coverage problem of the extents that it chose, if they do not contain all elements. The running time is that of
// find_coverage_problem().
std::optional<CoverageProblem> choose_cover(const Shape& tensor, std::span<const TensorExtent> extents,
                                            std::vector<bool>& chosen);

}  // namespace trainctl
