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
  Runs(const Shape& tensor, const TensorExtent& extent) : extent_(&extent) {
    const std::int64_t held = extent.count(tensor);
    if (held == 0) return;
    if (extent.kind() != TensorExtent::Kind::box) {
      first_ = extent.is_whole() ? 0 : extent.offsets()[0];
      count_ = held;
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
    count_ = extent.sizes()[inner] * strides_[inner];
    for (std::size_t axis = 0; axis < strides_.size(); ++axis) first_ += extent.offsets()[axis] * strides_[axis];
  }

  bool done() const { return count_ == 0; }
  std::int64_t first() const { return first_; }         // in the flattened tensor
  std::int64_t end() const { return first_ + count_; }  // behind its last element
  std::int64_t before() const { return before_; }       // elements of the extent before the run

  void next() {
    before_ += count_;
    for (std::size_t axis = index_.size(); axis-- > 0;) {
      first_ += strides_[axis];
      if (++index_[axis] < extent_->sizes()[axis]) return;
      first_ -= index_[axis] * strides_[axis];
      index_[axis] = 0;
    }
    count_ = 0;
  }

 private:
  const TensorExtent* extent_;
  std::vector<std::int64_t> strides_;
  std::vector<std::int64_t> index_;  // along the dimensions outside a run
  std::int64_t first_ = 0;
  std::int64_t count_ = 0;
  std::int64_t before_ = 0;
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

std::string to_string(const TensorExtent& extent) {
  if (extent.is_whole()) return "whole";
  std::string text;
  for (std::size_t i = 0; i < extent.offsets().size(); ++i) {
    text += format("{}{}:{}", i > 0 ? ", " : "", extent.offsets()[i], extent.offsets()[i] + extent.sizes()[i]);
  }
  return (extent.kind() == TensorExtent::Kind::range ? "elements [" : "[") + text + "]";
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
