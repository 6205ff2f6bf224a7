// Extents as ascending runs of consecutive elements: what two have in common, and what several cover.
#include "core/tensor/extent.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <queue>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"

namespace trainctl {
namespace {

// Goes in ascending order through the runs of an extent: elements that lie one behind the other in the tensor.
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
    // A run covers the trailing dimensions that the box holds in full, and the box's part of the dimension before them.
    std::size_t inner = strides_.size() - 1;
    while (inner > 0 && extent.sizes()[inner] == tensor[static_cast<std::int64_t>(inner)]) --inner;
    index_.resize(inner);
    length_ = extent.sizes()[inner] * strides_[inner];
    for (std::size_t axis = 0; axis < strides_.size(); ++axis) first_ += extent.offsets()[axis] * strides_[axis];
    const std::int64_t skipped = extent.in_box() ? extent.in_box()->first : 0;  // elements of the box
    std::int64_t run = skipped / length_;
    for (std::size_t axis = inner; axis-- > 0; run /= extent.sizes()[axis]) {
      index_[axis] = run % extent.sizes()[axis];
      first_ += index_[axis] * strides_[axis];
    }
    first_ += skipped % length_;
    count_ = std::min(length_ - skipped % length_, left_);
  }

  bool done() const { return left_ == 0; }
  std::int64_t first() const { return first_; }         // in the flattened tensor
  std::int64_t end() const { return first_ + count_; }  // behind its last element
  std::int64_t before() const { return before_; }       // elements of the extent before the run

  void next() {
    before_ += count_;
    left_ -= count_;
    first_ -= length_ - std::exchange(count_, std::min(length_, left_));  // to the start of the box's run
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
  std::vector<std::int64_t> index_;  // along the dimensions outside a run
  std::int64_t length_ = 0;          // of the box's runs, whole ones
  std::int64_t first_ = 0;
  std::int64_t count_ = 0;
  std::int64_t before_ = 0;
  std::int64_t left_ = 0;  // elements of the extent from the run on
};

}  // namespace

TensorExtent::TensorExtent(Kind kind, std::vector<std::int64_t> offsets, std::vector<std::int64_t> sizes)
    : kind_(kind), offsets_(std::move(offsets)), sizes_(std::move(sizes)) {}

TensorExtent TensorExtent::box(const Shape& shape, std::vector<std::int64_t> offsets, std::vector<std::int64_t> sizes) {
  const auto rank = static_cast<std::size_t>(shape.rank());
  require(offsets.size() == rank && sizes.size() == rank, "a box has the tensor's dimensions");
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t size = shape[static_cast<std::int64_t>(i)];
    require(offsets[i] >= 0 && sizes[i] >= 0 && offsets[i] + sizes[i] <= size, "a box lies within its tensor");
  }
  if (sizes == shape.sizes()) return {};
  if (rank == 1) return range(shape, offsets[0], sizes[0]);
  return {Kind::box, std::move(offsets), std::move(sizes)};
}

TensorExtent TensorExtent::range(const Shape& shape, std::int64_t offset, std::int64_t count) {
  require(offset >= 0 && count >= 0 && offset + count <= shape.count(), "a range lies within its tensor");
  if (count == shape.count()) return {};
  return {Kind::range, {offset}, {count}};
}

TensorExtent TensorExtent::range(const Shape& shape, const TensorExtent& outer, std::int64_t offset,
                                 std::int64_t count) {
  require(offset >= 0 && count >= 0 && offset + count <= outer.count(shape), "a range lies within its extent");
  if (outer.kind_ == Kind::whole) return range(shape, offset, count);
  if (outer.kind_ == Kind::range) return range(shape, outer.offsets_[0] + offset, count);
  if (count == 0) return range(shape, 0, 0);
  if (outer.in_box_) offset += outer.in_box_->first;
  // The smallest box that holds the elements: one place along the first dimensions, a few along the next one, and what
  // the outer box has along the rest.
  std::vector<std::int64_t> offsets = outer.offsets_, sizes = outer.sizes_;
  std::int64_t inside = Shape(sizes).count();  // elements of the outer box at one place of the dimensions before `axis`
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    inside /= sizes[axis];
    const std::int64_t first = offset / inside, last = (offset + count - 1) / inside;
    offset -= first * inside;
    offsets[axis] += first;
    sizes[axis] = last - first + 1;
    if (last > first) break;
  }
  TensorExtent part(Kind::box_range, std::move(offsets), std::move(sizes));
  part.in_box_ = InBox{offset, count};
  const Runs runs(shape, part);
  if (runs.end() - runs.first() == count) return range(shape, runs.first(), count);
  return count == Shape(part.sizes_).count() ? box(shape, part.offsets_, part.sizes_) : part;
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
          "memory has the size of its extent");
  std::int64_t copied = 0;
  Runs have(tensor, from), want(tensor, to);
  while (!have.done() && !want.done()) {
    const std::int64_t first = std::max(have.first(), want.first());
    const std::int64_t count = std::min(have.end(), want.end()) - first;
    if (count > 0) {
      const View part = source.part(have.before() + first - have.first(), count);
      std::memcpy(target.part(want.before() + first - want.first(), count).data, part.data,
                  static_cast<std::size_t>(part.bytes()));
      copied += count;
    }
    (have.end() <= want.end() ? have : want).next();
  }
  return copied;
}

std::optional<CoverageProblem> find_coverage_problem(const Shape& tensor, std::span<const TensorExtent> extents) {
  std::vector<Runs> runs;
  using Next = std::pair<std::int64_t, std::size_t>;  // (first element of its next run, extent)
  std::priority_queue<Next, std::vector<Next>, std::greater<>> queue;
  const auto enqueue = [&](std::size_t i) {
    if (!runs[i].done()) queue.push({runs[i].first(), i});
  };
  for (const TensorExtent& extent : extents) {
    runs.emplace_back(tensor, extent);
    enqueue(runs.size() - 1);
  }
  std::int64_t covered = 0;  // extents hold each element before this one exactly once
  std::size_t last = 0;      // the extent that holds element covered - 1
  while (!queue.empty()) {
    const auto [first, i] = queue.top();
    queue.pop();
    if (first > covered) break;
    if (first < covered) return CoverageProblem{first, false, last, i};
    covered = runs[i].end();
    last = i;
    runs[i].next();
    enqueue(i);
  }
  if (covered == tensor.count()) return std::nullopt;
  return CoverageProblem{covered, true};
}

}  // namespace trainctl
