// Extents as ascending runs of consecutive elements: copies the elements that two extents share, and checks that
// several extents cover a tensor.
#include "core/tensor/extent.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"

namespace trainctl {
namespace {

// Iterates over the runs of an extent in ascending order. A run is a range of consecutive elements of the flattened
// tensor.
class Runs {
 public:
  Runs(const Shape& tensor, const TensorExtent& extent) : extent_(&extent), left_(extent.count(tensor)) {
    if (left_ == 0) return;
    if (extent.is_whole() || extent.kind() == TensorExtent::Kind::range) {
      first_ = extent.is_whole() ? 0 : extent.offsets()[0];
      length_ = count_ = left_;
      return;
    }
    strides_.resize(static_cast<std::size_t>(tensor.rank()));
    std::int64_t stride = 1;
    for (std::size_t axis = strides_.size(); axis-- > 0;) {
      strides_[axis] = stride;
      stride *= tensor[static_cast<std::int64_t>(axis)];
    }
    // A run covers the trailing dimensions that the box contains completely, and the box's range of the dimension
    // before them.
    std::size_t inner = strides_.size() - 1;
    while (inner > 0 && extent.sizes()[inner] == tensor[static_cast<std::int64_t>(inner)]) --inner;
    index_.resize(inner);
    length_ = extent.sizes()[inner] * strides_[inner];
    for (std::size_t axis = 0; axis < strides_.size(); ++axis) first_ += extent.offsets()[axis] * strides_[axis];
    const std::int64_t skipped = extent.in_box() ? extent.in_box()->first : 0;  // elements of the box before the range
    std::int64_t run = skipped / length_;
    for (std::size_t axis = inner; axis-- > 0; run /= extent.sizes()[axis]) {
      index_[axis] = run % extent.sizes()[axis];
      first_ += index_[axis] * strides_[axis];
    }
    first_ += skipped % length_;
    count_ = std::min(length_ - skipped % length_, left_);
  }

  bool done() const { return left_ == 0; }
  std::int64_t first() const { return first_; }         // index in the flattened tensor
  std::int64_t end() const { return first_ + count_; }  // index after its last element
  std::int64_t before() const { return before_; }       // number of elements of the extent before the run

  void next() {
    before_ += count_;
    left_ -= count_;
    first_ -= length_ - std::exchange(count_, std::min(length_, left_));  // back to the first element of the box's run
    for (std::size_t axis = index_.size(); axis-- > 0;) {
      first_ += strides_[axis];
      if (++index_[axis] < extent_->sizes()[axis]) return;
      first_ -= index_[axis] * strides_[axis];
      index_[axis] = 0;
    }
  }

 private:
  const TensorExtent* extent_;
  std::vector<std::int64_t> strides_;
  std::vector<std::int64_t> index_;  // position of the run along the dimensions before `inner`
  std::int64_t length_ = 0;          // length of a complete run of the box
  std::int64_t first_ = 0;
  std::int64_t count_ = 0;
  std::int64_t before_ = 0;
  std::int64_t left_ = 0;  // number of elements from the start of the run to the end of the extent
};

}  // namespace

TensorExtent::TensorExtent(Kind kind, std::vector<std::int64_t> offsets, std::vector<std::int64_t> sizes)
    : kind_(kind), offsets_(std::move(offsets)), sizes_(std::move(sizes)) {}

TensorExtent TensorExtent::box(const Shape& shape, std::vector<std::int64_t> offsets, std::vector<std::int64_t> sizes) {
  const auto rank = static_cast<std::size_t>(shape.rank());
  require(offsets.size() == rank && sizes.size() == rank, "a box and its tensor differ in the number of dimensions");
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t size = shape[static_cast<std::int64_t>(i)];
    require(offsets[i] >= 0 && sizes[i] >= 0 && offsets[i] + sizes[i] <= size, "a box is not within its tensor");
  }
  if (sizes == shape.sizes()) return {};
  if (rank == 1) return range(shape, offsets[0], sizes[0]);
  return {Kind::box, std::move(offsets), std::move(sizes)};
}

TensorExtent TensorExtent::range(const Shape& shape, std::int64_t offset, std::int64_t count) {
  require(offset >= 0 && count >= 0 && offset + count <= shape.count(), "a range is not within its tensor");
  if (count == shape.count()) return {};
  return {Kind::range, {offset}, {count}};
}

TensorExtent TensorExtent::range(const Shape& shape, const TensorExtent& outer, std::int64_t offset,
                                 std::int64_t count) {
  require(offset >= 0 && count >= 0 && offset + count <= outer.count(shape), "a range is not within its extent");
  if (outer.kind_ == Kind::whole) return range(shape, offset, count);
  if (outer.kind_ == Kind::range) return range(shape, outer.offsets_[0] + offset, count);
  if (count == 0) return range(shape, 0, 0);
  if (outer.in_box_) offset += outer.in_box_->first;
  // The smallest box that contains the elements: one position along the first dimensions, a range of the next
  // dimension, and the full range of the outer box along the others.
  std::vector<std::int64_t> offsets = outer.offsets_, sizes = outer.sizes_;
  std::int64_t inside = Shape(sizes).count();  // elements of the outer box at one position before `axis`
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    inside /= sizes[axis];
    const std::int64_t first = offset / inside, last = (offset + count - 1) / inside;
    offset -= first * inside;
    offsets[axis] += first;
    sizes[axis] = last - first + 1;
    if (last > first) break;
  }
  TensorExtent inner(Kind::box_range, std::move(offsets), std::move(sizes));
  inner.in_box_ = InBox{offset, count};
  const Runs runs(shape, inner);
  if (runs.end() - runs.first() == count) return range(shape, runs.first(), count);
  return count == Shape(inner.sizes_).count() ? box(shape, inner.offsets_, inner.sizes_) : inner;
}

std::string to_string(const TensorExtent& extent) {
  if (extent.is_whole()) return "whole";
  std::string text;
  for (std::size_t i = 0; i < extent.offsets().size(); ++i) {
    text += format("{}{}:{}", i > 0 ? ", " : "", extent.offsets()[i], extent.offsets()[i] + extent.sizes()[i]);
  }
  text = (extent.kind() == TensorExtent::Kind::range ? "elements [" : "[") + text + "]";
  if (!extent.in_box()) return text;
  return format("elements [{}:{}] of {}", extent.in_box()->first, extent.in_box()->first + extent.in_box()->count,
                text);
}

std::int64_t copy_common(const Shape& tensor, const TensorExtent& from, const View& source, const TensorExtent& to,
                         const View& target) {
  require(source.dtype == target.dtype && source.count == from.count(tensor) && target.count == to.count(tensor),
          "source and target differ in dtype, or do not have the sizes of their extents");
  std::int64_t copied = 0;
  Runs have(tensor, from), want(tensor, to);
  while (!have.done() && !want.done()) {
    const std::int64_t first = std::max(have.first(), want.first());
    const std::int64_t count = std::min(have.end(), want.end()) - first;
    if (count > 0) {
      const View common = source.slice(have.before() + first - have.first(), count);
      std::memcpy(target.slice(want.before() + first - want.first(), count).data, common.data,
                  static_cast<std::size_t>(common.bytes()));
      copied += count;
    }
    (have.end() <= want.end() ? have : want).next();
  }
  return copied;
}

namespace {

// Walks through the runs of all extents in the order of their elements. If `kept` is not null, it tells of each extent
// whether it was kept: one that begins with an element that a kept extent contains is dropped.
std::optional<CoverageProblem> walk(const Shape& tensor, std::span<const TensorExtent> extents,
                                    std::vector<bool>* kept) {
  std::vector<Runs> runs;
  // The first element of the next run, whether the extent has not been kept yet, and the index of the extent.
  using Next = std::tuple<std::int64_t, bool, std::size_t>;
  std::priority_queue<Next, std::vector<Next>, std::greater<>> queue;
  const auto enqueue = [&](std::size_t i) {
    if (!runs[i].done()) queue.push({runs[i].first(), kept != nullptr && !(*kept)[i], i});
  };
  for (const TensorExtent& extent : extents) {
    runs.emplace_back(tensor, extent);
    enqueue(runs.size() - 1);
  }
  std::int64_t covered = 0;  // each element before this one is in exactly one extent
  std::size_t last = 0;      // the extent that contains element covered - 1
  while (!queue.empty()) {
    const auto [first, is_new, i] = queue.top();
    queue.pop();
    if (first > covered) break;
    if (first < covered && is_new) continue;
    if (first < covered) return CoverageProblem{first, false, last, i};
    if (is_new) (*kept)[i] = true;
    covered = runs[i].end();
    last = i;
    runs[i].next();
    enqueue(i);
  }
  if (covered == tensor.count()) return std::nullopt;
  return CoverageProblem{covered, true};
}

}  // namespace

std::optional<CoverageProblem> find_coverage_problem(const Shape& tensor, std::span<const TensorExtent> extents) {
  return walk(tensor, extents, nullptr);
}

std::optional<CoverageProblem> choose_cover(const Shape& tensor, std::span<const TensorExtent> extents,
                                            std::vector<bool>& chosen) {
  chosen.assign(extents.size(), false);
  return walk(tensor, extents, &chosen);
}

}  // namespace trainctl
