// Functions of expressions that order, join, split and repeat values along dimensions.
#include <algorithm>
#include <numeric>

#include "core/graph/ops/images/padding.h"
#include "core/graph/ops/reshaping/flip.h"
#include "core/layers/expression/call.h"
#include "core/layers/expression/functions.h"

namespace trainctl::expression {
namespace {

std::vector<std::int64_t> dimensions_of(const ExpressionOperand& x) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(x.rank()));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// The elements [begin, end) along an axis.
ExpressionOperand part(const FunctionCall& call, const ExpressionOperand& x, int axis, std::int64_t begin,
                       std::int64_t end) {
  return sliced(call.builder, x, axis, {Subscript::Kind::slice, begin, end, {}, call.column});
}

ExpressionOperand joined(const FunctionCall& call, std::vector<ExpressionOperand> items, int axis) {
  ExpressionOperand list{.kind = ExpressionOperand::Kind::list, .column = call.column, .items = std::move(items)};
  return call.evaluate("concatenate(xs, axis)", {{"xs", list}, {"axis", call.builder.number(axis, call.column)}});
}

// x with dimension `axis`, of size 1, repeated.
ExpressionOperand repeated(const FunctionCall& call, const ExpressionOperand& x, int axis, std::int64_t count) {
  if (count < 1 || count > (1 << 24)) call.fail(format("{} is not a number of repetitions", count));
  ExpressionOperand wide = call.builder.stored(x);
  wide.shape[axis] = count;
  return call.builder.stored(wide);
}

// x with zeros around it. `widths`: a pair of numbers for each dimension.
ExpressionOperand with_zeros(const FunctionCall& call, const ExpressionOperand& x, const ExpressionOperand& widths) {
  ExpressionOperand padded = x;
  for (int axis = 0; axis < static_cast<int>(x.rank()); ++axis) {
    const ExpressionOperand& pair = widths.items[static_cast<std::size_t>(axis)];
    if (pair.kind != ExpressionOperand::Kind::list || pair.items.size() != 2) {
      call.fail("pad_width must be a list of pairs such as ((0, 0), (1, 2))");
    }
    const std::int64_t before = call.whole(pair.items[0], "pad_width"), after = call.whole(pair.items[1], "pad_width");
    if (before < 0 || after < 0 || before > (1 << 24) || after > (1 << 24)) {
      call.fail("a width must be a number from 0 to 16777216");
    }
    if (before + after == 0) continue;
    call.not_samples(x, axis);
    Shape shape = padded.shape;
    shape[axis] += before + after;
    const ExpressionOperand image = call.builder.reshaped(padded, around(padded, axis));
    const Borders borders{{0, before}, {0, after}};
    padded = call.builder.reshaped(call.builder.op(std::make_shared<Pad2d>(borders), {image}, call.column), shape);
  }
  return padded;
}

}  // namespace

ExpressionOperand swapaxes(const FunctionCall& call) {
  const ExpressionOperand& x = call.tensor("x");
  std::vector<std::int64_t> order = dimensions_of(x);
  std::swap(order[static_cast<std::size_t>(call.axis(x, "axis1"))],
            order[static_cast<std::size_t>(call.axis(x, "axis2"))]);
  return permuted(call.builder, x, std::move(order), call.column);
}

ExpressionOperand moveaxis(const FunctionCall& call) {
  const ExpressionOperand& x = call.tensor("x");
  std::vector<std::int64_t> order = dimensions_of(x);
  const int from = call.axis(x, "source"), to = call.axis(x, "destination");
  order.erase(order.begin() + from);
  order.insert(order.begin() + to, from);
  return permuted(call.builder, x, std::move(order), call.column);
}

ExpressionOperand stack(const FunctionCall& call) {
  const ExpressionOperand& list = call.of("x");
  if (list.kind != ExpressionOperand::Kind::list || list.items.empty() || !list.items[0].is_tensor()) {
    call.fail("x must be a list of tensors");
  }
  const ExpressionOperand& first = list.items[0];
  const int axis = call.not_samples(first, call.axis_below(first.rank() + 1, call.whole(call.of("axis"), "axis")));
  std::vector<ExpressionOperand> items;
  for (const ExpressionOperand& x : list.items) {
    if (!x.is_tensor() || x.shape != first.shape) call.fail("all items must be tensors of the same shape");
    items.push_back(
        call.evaluate("expand_dims(x, axis)", {{"x", x}, {"axis", call.builder.number(axis, call.column)}}));
  }
  return joined(call, std::move(items), axis);
}

ExpressionOperand split(const FunctionCall& call) {
  const ExpressionOperand& x = call.tensor("x");
  const int axis = call.axis(x);
  const std::int64_t size = x.shape[axis];
  std::vector<std::int64_t> ends = call.whole_numbers("indices_or_sections");
  if (call.of("indices_or_sections").kind != ExpressionOperand::Kind::list) {
    const std::int64_t sections = ends[0];
    if (sections < 1 || size % sections != 0) {
      call.fail(format("a dimension of {} cannot be split into {} equal parts", size, sections));
    }
    ends.clear();
    for (std::int64_t k = 1; k < sections; ++k) ends.push_back(size / sections * k);
  }
  ends.push_back(size);
  ExpressionOperand parts{.kind = ExpressionOperand::Kind::list, .column = call.column};
  std::int64_t begin = 0;
  for (const std::int64_t end : ends) {
    if (end <= begin || end > size) call.fail(format("{} is not an ascending index below {}", end, size));
    parts.items.push_back(part(call, x, axis, begin, end));
    begin = end;
  }
  return parts;
}

ExpressionOperand roll(const FunctionCall& call) {
  const ExpressionOperand& x = call.tensor("x");
  const int axis = call.axis(x);
  const std::int64_t size = x.shape[axis], shift = call.whole(call.of("shift"), "shift") % size;
  if (shift == 0) return x;
  const std::int64_t first = shift > 0 ? size - shift : -shift;  // becomes element 0
  return joined(call, {part(call, x, axis, first, size), part(call, x, axis, 0, first)}, axis);
}

ExpressionOperand flip(const FunctionCall& call) {
  ExpressionOperand x = call.tensor("x");
  for (const int axis : call.axes(x)) x = call.builder.op(std::make_shared<Flip>(axis), {x}, call.column);
  return x;
}

ExpressionOperand repeat(const FunctionCall& call) {
  const ExpressionOperand& x = call.tensor("x");
  const int axis = call.axis(x);
  const std::int64_t count = call.whole(call.of("repeats"), "repeats");
  std::vector<std::int64_t> sizes = x.shape.sizes();
  sizes.insert(sizes.begin() + axis + 1, 1);
  Shape shape = x.shape;
  const ExpressionOperand wide = repeated(call, call.builder.reshaped(x, Shape(std::move(sizes))), axis + 1, count);
  shape[axis] = checked_multiply(shape[axis], count);
  return call.builder.reshaped(wide, shape);
}

ExpressionOperand tile(const FunctionCall& call) {
  ExpressionOperand x = call.tensor("x");
  const std::vector<std::int64_t> counts = call.whole_numbers("repeats");
  if (std::ssize(counts) != x.rank())
    call.fail(format("repeats needs a number for each dimension of {}", shape_text(x)));
  if (x.has_samples && counts[0] != 1) call.fail("dimension 0, that of the samples, cannot be repeated");
  for (int axis = 0; axis < static_cast<int>(x.rank()); ++axis) {
    const std::int64_t count = counts[static_cast<std::size_t>(axis)];
    if (count == 1) continue;
    std::vector<std::int64_t> sizes = x.shape.sizes();
    sizes.insert(sizes.begin() + axis, 1);
    Shape shape = x.shape;
    const ExpressionOperand wide = repeated(call, call.builder.reshaped(x, Shape(std::move(sizes))), axis, count);
    shape[axis] = checked_multiply(shape[axis], count);
    x = call.builder.reshaped(wide, shape);
  }
  return x;
}

ExpressionOperand pad(const FunctionCall& call) {
  const ExpressionOperand& x = call.tensor("x");
  if (call.of("mode").kind != ExpressionOperand::Kind::text || call.of("mode").text != "constant") {
    call.fail("mode must be 'constant'");
  }
  const ExpressionOperand &widths = call.of("pad_width"), &value = call.of("constant_values");
  const bool fits = widths.kind == ExpressionOperand::Kind::list && std::ssize(widths.items) == x.rank();
  if (!fits) call.fail(format("pad_width needs a pair of numbers for each dimension of {}", shape_text(x)));
  if (value.kind != ExpressionOperand::Kind::number) call.fail("constant_values must be a number");
  const ExpressionOperand padded = with_zeros(call, x, widths);
  if (value.number == 0) return padded;
  const ExpressionOperand ones = call.evaluate("logical_or(x == x, isnan(x))", {{"x", x}});
  return call.evaluate("where(inside, x, value)",
                       {{"inside", with_zeros(call, ones, widths)}, {"x", padded}, {"value", value}});
}

}  // namespace trainctl::expression
