// Functions of expressions that change shapes, join tensors and take slices.
#include <algorithm>

#include "core/graph/ops/images/padding.h"
#include "core/graph/ops/reshaping/permute.h"
#include "core/graph/ops/reshaping/shaping.h"
#include "core/layers/expression/call.h"
#include "core/layers/expression/functions.h"

namespace trainctl {
namespace expression {
Shape around(const ExpressionOperand& x, int axis) {
  Shape shape{x.has_samples ? x.shape[0] : 1, 1, x.shape[axis], 1};
  for (int k = x.has_samples ? 1 : 0; k < axis; ++k) shape[1] *= x.shape[k];
  for (int k = axis + 1; k < static_cast<int>(x.rank()); ++k) shape[3] *= x.shape[k];
  return shape;
}

ExpressionOperand permuted(ExpressionBuilder& builder, const ExpressionOperand& x, std::vector<std::int64_t> order,
                           int column) {
  if (std::is_sorted(order.begin(), order.end())) return x;
  if (x.has_samples) return builder.op(std::make_shared<Permute>(std::move(order)), {x}, column);
  Shape shape = x.shape;
  for (std::size_t k = 0; k < order.size(); ++k) shape[static_cast<std::int64_t>(k)] = x.shape[order[k]];
  for (std::int64_t& axis : order) ++axis;
  order.insert(order.begin(), 0);
  const ExpressionOperand one = builder.reshaped(x, x.shape.with_front(1));
  return builder.reshaped(builder.op(std::make_shared<Permute>(std::move(order)), {one}, column), shape);
}

ExpressionOperand transpose(const FunctionCall& call) {
  const ExpressionOperand& x = call.tensor("x");
  std::vector<std::int64_t> order;
  if (call.of("axes").kind == ExpressionOperand::Kind::none) {
    for (std::int64_t axis = x.rank(); axis-- > 0;) order.push_back(axis);
  } else {
    for (const std::int64_t axis : call.whole_numbers("axes")) order.push_back(call.axis_below(x.rank(), axis));
  }
  std::vector<std::int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t k = 0; k < sorted.size(); ++k) {
    if (sorted[k] != static_cast<std::int64_t>(k)) call.fail("axes must name each dimension once");
  }
  if (std::ssize(order) != x.rank()) call.fail(format("axes must name the {}", counted(x.rank(), "dimension")));
  if (x.has_samples && order[0] != 0) call.fail("dimension 0, that of the samples, must stay first");
  return permuted(call.builder, x, std::move(order), call.column);
}

ExpressionOperand shape(const FunctionCall& call) {
  const ExpressionOperand& x = call.tensor("x");
  ExpressionOperand sizes{.kind = ExpressionOperand::Kind::list, .column = call.column};
  for (std::int64_t axis = 0; axis < x.rank(); ++axis) {
    const bool samples = axis == 0 && x.has_samples;
    sizes.items.push_back(samples ? ExpressionOperand{.kind = ExpressionOperand::Kind::samples, .column = call.column}
                                  : call.builder.number(static_cast<double>(x.shape[axis]), call.column));
    if (samples) sizes.items.back().items = {x};
  }
  return sizes;
}

ExpressionOperand reshape(const FunctionCall& call) {
  const ExpressionOperand& x = call.tensor("x");
  std::vector<std::int64_t> sizes = call.whole_numbers("newshape", true);
  if (x.has_samples) {
    if (sizes.empty() || sizes[0] != -1) call.fail("newshape must begin with -1, the number of samples");
    sizes[0] = x.shape[0];
  }
  std::int64_t known = 1, open = 0;
  for (const std::int64_t size : sizes) {
    if (size < -1 || size == 0) call.fail(format("{} is not the size of a dimension", size));
    size < 0 ? ++open : known = checked_multiply(known, size);
  }
  if (open > 1) call.fail("only one size may be -1, besides that of the samples");
  for (std::int64_t& size : sizes) {
    if (size < 0) size = x.shape.count() / known;
  }
  const Shape shape(std::move(sizes));
  if (shape.count() != x.shape.count()) call.fail(format("{} has another number of values", shape_text(x)));
  return call.builder.reshaped(x, shape);
}

ExpressionOperand expand_dims(const FunctionCall& call) {
  const ExpressionOperand& x = call.tensor("x");
  const int axis = call.axis_below(x.rank() + 1, call.whole(call.of("axis"), "axis"));
  std::vector<std::int64_t> sizes = x.shape.sizes();
  sizes.insert(sizes.begin() + call.not_samples(x, axis), 1);
  return call.builder.reshaped(x, Shape(std::move(sizes)));
}

ExpressionOperand squeeze(const FunctionCall& call) {
  const ExpressionOperand& x = call.tensor("x");
  const int axis = call.axis(x);
  if (x.shape[axis] != 1) call.fail(format("dimension {} of {} is not 1", axis, shape_text(x)));
  std::vector<std::int64_t> sizes = x.shape.sizes();
  sizes.erase(sizes.begin() + axis);
  return call.builder.reshaped(x, Shape(std::move(sizes)));
}

// The op joins tensors along the last dimension only. Therefore the axis and those after it become one dimension.
ExpressionOperand concatenate(const FunctionCall& call) {
  const ExpressionOperand& list = call.of("xs");
  if (list.kind != ExpressionOperand::Kind::list || list.items.empty()) call.fail("xs must be a list of tensors");
  const ExpressionOperand& first = list.items[0];
  if (!first.is_tensor()) call.fail("xs must be a list of tensors");
  const int axis = call.axis(first);
  std::vector<ExpressionOperand> joined;
  Shape shape = first.shape;
  shape[axis] = 0;
  for (const ExpressionOperand& x : list.items) {
    bool fits = x.is_tensor() && x.rank() == first.rank() && x.has_samples == first.has_samples;
    for (int k = 0; fits && k < static_cast<int>(x.rank()); ++k) fits = k == axis || x.shape[k] == first.shape[k];
    if (!fits) {
      call.fail(format("all items need the dimensions of {}, except for axis {}", shape_text(first), axis));
    }
    shape[axis] += x.shape[axis];
    const Shape of = around(x, axis);
    joined.push_back(call.builder.reshaped(x, {of[0] * of[1], of[2] * of[3]}));
  }
  if (joined.size() == 1) return first;
  return call.builder.reshaped(call.builder.op(std::make_shared<Concatenate>(), joined, call.column), shape);
}

}  // namespace expression

ExpressionOperand sliced(ExpressionBuilder& builder, const ExpressionOperand& x, int axis, const Subscript& subscript) {
  const bool is_whole =
      subscript.kind == Subscript::Kind::slice && !subscript.begin && !subscript.end && !subscript.step;
  if (is_whole) return x;
  if (axis == 0 && x.has_samples) {
    throw ExpressionError(subscript.column, "dimension 0 is that of the samples, which must stay whole; write ':'");
  }
  const std::int64_t size = x.shape[axis];
  const auto counted = [&](std::int64_t number) { return number < 0 ? number + size : number; };
  std::int64_t begin = 0, end = size;
  if (subscript.kind == Subscript::Kind::element) {
    begin = counted(*subscript.begin);
    end = begin + 1;
    if (begin < 0 || begin >= size) {
      throw ExpressionError(subscript.column,
                            format("{} is not an index of a dimension of {}", *subscript.begin, size));
    }
  } else {
    if (subscript.step.value_or(1) != 1) throw ExpressionError(subscript.column, "the step of a slice must be 1");
    begin = std::clamp<std::int64_t>(counted(subscript.begin.value_or(0)), 0, size);
    end = std::clamp<std::int64_t>(counted(subscript.end.value_or(size)), 0, size);
    if (begin >= end) throw ExpressionError(subscript.column, "the slice is empty");
    if (begin == 0 && end == size) return x;
  }
  const ExpressionOperand image = builder.reshaped(x, expression::around(x, axis));
  const Borders others{{0, begin}, {0, size - end}};
  Shape shape = x.shape;
  shape[axis] = end - begin;
  return builder.reshaped(builder.op(std::make_shared<Crop2d>(others), {image}, x.column), shape);
}

}  // namespace trainctl
