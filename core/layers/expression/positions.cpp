// Functions of expressions that number the elements along dimensions, and select by these numbers.
#include <algorithm>
#include <cmath>

#include "core/graph/ops/arange.h"
#include "core/layers/expression/call.h"
#include "core/layers/expression/functions.h"

namespace trainctl::expression {
namespace {

constexpr double most_numbers = 1 << 24;  // float32 has all whole numbers up to this one

// The numbers 0, 1, ..., count - 1 along a dimension that `after` dimensions follow.
ExpressionOperand numbers(const FunctionCall& call, std::int64_t count, std::int64_t after) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(after + 1), 1);
  sizes[0] = count;
  return call.builder.reshaped(call.builder.op(std::make_shared<Arange>(count), {}, call.column), Shape(sizes));
}

double number(const FunctionCall& call, const std::string& name) {
  if (call.of(name).kind != ExpressionOperand::Kind::number) call.fail(format("{} must be a number", name));
  return call.of(name).number;
}

std::int64_t size(const FunctionCall& call, const std::string& name) {
  const std::int64_t value = call.whole(call.of(name), name);
  if (value < 1 || value > static_cast<std::int64_t>(most_numbers)) {
    call.fail(format("{} must be a number from 1 to {}", name, static_cast<std::int64_t>(most_numbers)));
  }
  return value;
}

// The elements of x along an axis, at the positions of a list of numbers.
ExpressionOperand elements_at(const FunctionCall& call, const FunctionCall::AxisOf& of) {
  constexpr std::size_t most_runs = 64;
  const std::int64_t count = of.x.shape[of.axis];
  std::vector<std::int64_t> positions;
  for (const std::int64_t index : call.whole_numbers("indices")) {
    if (index < -count || index >= count) call.fail(format("{} is not an index of a dimension of {}", index, count));
    positions.push_back(index < 0 ? index + count : index);
  }
  std::vector<ExpressionOperand> runs;  // of consecutive positions
  for (std::size_t begin = 0, end = 0; begin < positions.size(); begin = end) {
    for (end = begin + 1; end < positions.size() && positions[end] == positions[end - 1] + 1;) ++end;
    runs.push_back(sliced(call.builder, of.x, of.axis,
                          {Subscript::Kind::slice, positions[begin], positions[end - 1] + 1, {}, call.column}));
  }
  if (runs.empty() || runs.size() > most_runs) {
    call.fail(format("indices must have from 1 to {} ranges of consecutive numbers", most_runs));
  }
  const ExpressionOperand list{.kind = ExpressionOperand::Kind::list, .column = call.column, .items = std::move(runs)};
  return call.evaluate("concatenate(xs, axis)", {{"xs", list}, {"axis", call.builder.number(of.axis, call.column)}});
}

// The rows of a weight whose numbers are the elements of a tensor.
ExpressionOperand rows_at(const FunctionCall& call, const FunctionCall::AxisOf& of, const ExpressionOperand& indices) {
  const bool is_weight = of.x.weight != no_tensor;
  if (of.x.has_samples || of.axis != 0 || (indices.has_samples && !is_weight)) {
    call.fail(
        "indices that are a tensor select rows of a weight, along axis 0; for other tensors, indices must be a "
        "whole number or a list of them");
  }
  if (const auto rows = call.builder.rows(of.x, indices, call.column)) return *rows;
  const ExpressionOperand one_hot = call.evaluate(
      "one_hot(i, n)", {{"i", indices}, {"n", call.builder.number(static_cast<double>(of.x.shape[0]), call.column)}});
  std::string letters;
  for (std::int64_t d = 0; d < indices.rank(); ++d) letters += static_cast<char>('b' + d);
  std::string rest;
  for (std::int64_t d = 1; d < of.x.rank(); ++d) rest += static_cast<char>('B' + d);
  ExpressionOperand equation{.kind = ExpressionOperand::Kind::text, .column = call.column};
  equation.text = format("{0}A,A{1}->{0}{1}", letters, rest);
  const ExpressionOperand found =
      call.evaluate("einsum(equation, i, x)", {{"equation", equation}, {"i", one_hot}, {"x", of.x}});
  // A number that is no row gives NaN, as the op Embedding does: here, the root of -1.
  std::string position = "...";
  for (std::int64_t d = 1; d < of.x.rank(); ++d) position += ", None";
  return call.evaluate("y + sqrt(where((i > -1) & (i < n), 0, -1))[" + position + "]",
                       {{"y", found},
                        {"i", call.builder.exact(indices)},
                        {"n", call.builder.number(static_cast<double>(of.x.shape[0]), call.column)}});
}

// The position of the extreme of x along an axis; the first one, if there are several. NaN counts as an extreme, as in
// NumPy.
ExpressionOperand position_of(const FunctionCall& call, ReduceKind kind) {
  const FunctionCall::AxisOf of = call.one_axis();
  const bool was_flat = call.of("axis").kind == ExpressionOperand::Kind::none;
  const std::int64_t count = of.x.shape[of.axis];
  const ExpressionOperand x = call.builder.stored(call.builder.exact(of.x));
  const ExpressionOperand extreme = call.builder.reduced(x, kind, {of.axis}, true, 1, call.column);
  const ExpressionOperand found =
      call.evaluate("where((x == extreme) | isnan(x), position, count)",
                    {{"x", x},
                     {"extreme", extreme},
                     {"position", numbers(call, count, x.rank() - 1 - of.axis)},
                     {"count", call.builder.number(static_cast<double>(count), call.column)}});
  const bool keep = call.flag("keepdims");
  const ExpressionOperand position =
      call.builder.reduced(call.builder.exact(found), ReduceKind::minimum, {of.axis}, keep, 1, call.column);
  if (!keep || !was_flat) return position;
  return call.builder.reshaped(position,
                               Shape(std::vector<std::int64_t>(static_cast<std::size_t>(call.of("x").rank()), 1)));
}

}  // namespace

ExpressionOperand arange(const FunctionCall& call) {
  const bool has_start = call.of("stop").kind != ExpressionOperand::Kind::none;
  const double first = has_start ? number(call, "start") : 0, end = number(call, has_start ? "stop" : "start");
  const double step = number(call, "step");
  if (step == 0) call.fail("step must not be 0");
  const double count = std::ceil((end - first) / step);
  if (!(count >= 1)) call.fail(format("from {} to {} in steps of {} there is no number", first, end, step));
  if (count > most_numbers) {
    call.fail(format("the range has more than {} numbers", static_cast<std::int64_t>(most_numbers)));
  }
  return call.evaluate("start + step * i", {{"start", call.builder.number(first, call.column)},
                                            {"step", call.of("step")},
                                            {"i", numbers(call, static_cast<std::int64_t>(count), 0)}});
}

ExpressionOperand eye(const FunctionCall& call) {
  const std::int64_t rows = size(call, "N");
  const std::int64_t columns = call.of("M").kind == ExpressionOperand::Kind::none ? rows : size(call, "M");
  number(call, "k");
  return call.evaluate("row + k == column",
                       {{"row", numbers(call, rows, 1)}, {"column", numbers(call, columns, 0)}, {"k", call.of("k")}});
}

ExpressionOperand one_hot(const FunctionCall& call) {
  const ExpressionOperand& x = call.tensor("x");
  const std::int64_t classes = size(call, "num_classes");
  const int axis = call.not_samples(x, call.axis_below(x.rank() + 1, call.whole(call.of("axis"), "axis")));
  const ExpressionOperand number = call.builder.exact(x);
  return call.evaluate("trunc(expand_dims(x, axis)) == classes",
                       {{"x", number},
                        {"axis", call.builder.number(axis, call.column)},
                        {"classes", numbers(call, classes, x.rank() - axis)}});
}

ExpressionOperand argmax(const FunctionCall& call) { return position_of(call, ReduceKind::maximum); }
ExpressionOperand argmin(const FunctionCall& call) { return position_of(call, ReduceKind::minimum); }

ExpressionOperand take(const FunctionCall& call) {
  const FunctionCall::AxisOf of = call.one_axis();
  const ExpressionOperand& indices = call.of("indices");
  if (indices.is_tensor()) return rows_at(call, of, indices);
  const ExpressionOperand found = elements_at(call, of);
  if (indices.kind == ExpressionOperand::Kind::list) return found;
  return call.evaluate("squeeze(x, axis)", {{"x", found}, {"axis", call.builder.number(of.axis, call.column)}});
}

}  // namespace trainctl::expression
