// Shapes, placements and gradients of sums and extremes over dimensions.
#include "core/graph/ops/reduce.h"

#include <algorithm>

#include "core/expression/scalar_graph.h"
#include "core/graph/differentiator.h"
#include "core/graph/ops/attributes.h"
#include "core/graph/ops/elementwise/elementwise.h"
#include "core/graph/ops/reshaping/shaping.h"
#include "core/graph/placement_rules.h"

namespace trainctl {
namespace {

const char* name_of(ReduceKind kind) {
  return kind == ReduceKind::sum ? "sum" : kind == ReduceKind::maximum ? "maximum" : "minimum";
}

// The shape of x with the dimensions [begin, end) as 1.
Shape kept_shape(Shape x, int begin, int end) {
  for (int axis = begin; axis < end; ++axis) x[axis] = 1;
  return x;
}

// The dimension along which the result of a sum over [begin, end) is split, and the same dimension of its kept shape.
std::optional<Reshape::Kept> kept_dimension(const Tensor& y, int begin, int end) {
  std::optional<Reshape::Kept> kept;
  for (const Placement& placement : y.placements) {
    if (placement.kind != Placement::Kind::split) continue;
    const int of = placement.dimension;
    kept = Reshape::Kept{of, of < begin ? of : of + end - begin};
  }
  return kept;
}

// The program scale * x.
ElementwiseProgram scaled(double scale) {
  ScalarGraph graph;
  const int results[] = {graph.apply(ScalarFunction::multiply, graph.of_input(0), graph.of_constant(scale))};
  return graph.program(results);
}

// The dimensions [begin, end) along which a tensor of shape `from` is summed to a shape with fewer or smaller
// dimensions.
struct SummedRange {
  int begin = 0, end = 0;
  bool keep = false;
};

// The ranges that lead from a shape to the shape `to` that was broadcast to it, the last dimensions first.
std::vector<SummedRange> summed_ranges(const Shape& from, const Shape& to) {
  std::vector<SummedRange> ranges;
  const auto leading = static_cast<int>(from.rank() - to.rank());
  for (auto axis = static_cast<int>(from.rank()) - 1; axis >= leading; --axis) {
    if (to[axis - leading] == from[axis]) continue;
    if (!ranges.empty() && ranges.back().begin == axis + 1) {
      ranges.back().begin = axis;
    } else {
      ranges.push_back({axis, axis + 1, true});
    }
  }
  if (leading > 0) ranges.push_back({0, leading, false});
  return ranges;
}

}  // namespace

std::string Reduce::attributes() const {
  AttributeText text;
  text.word(name_of(reduction)).value("begin", begin).value("end", end).flag("keep", keep);
  if (scale != 1) text.value("scale", scale);
  text.flag("splits", splits);
  return text.word(trainctl::name_of(dtype)).flag("accumulate", accumulate).text();
}

std::vector<TensorType> Reduce::outputs(std::span<const TensorType> inputs) const {
  const Shape& x = inputs[0].shape;
  require(0 <= begin && begin <= end && end <= x.rank(), "reduce: x does not have these dimensions");
  if (keep) return {{kept_shape(x, begin, end), dtype}};
  std::vector<std::int64_t> sizes = x.sizes();
  sizes.erase(sizes.begin() + begin, sizes.begin() + end);
  return {{Shape(std::move(sizes)), dtype}};
}

OutputPlacements Reduce::placements(const PlacementQuery& query) const {
  std::string x = every_dimension(query.input_types[0]), y, summed;
  for (std::size_t axis = 0; axis < x.size(); ++axis) {
    const bool reduced = static_cast<int>(axis) >= begin && static_cast<int>(axis) < end;
    if (reduced && keep) y += '.';
    if (!reduced) y += x[axis];
    if (reduced && splits) summed += x[axis];
    if (reduced && !splits) x[axis] = '.';
  }
  if (reduction != ReduceKind::sum) return place_by({{x}, {y}}, query);
  return kept_if(accumulate, place_by({{x + "+S"}, {y + "+" + summed + "S"}}, query), query);
}

double Reduce::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return static_cast<double>(inputs[0].shape.count());
}

void Reduce::differentiate(const Op& op, Differentiator& differentiator) const {
  require(!splits, "reduce: a sum over shards has no gradient");
  const TensorId x = op.inputs[0];
  const TensorType type = differentiator.tensor(x).type;
  const Shape kept = kept_shape(type.shape, begin, end);
  const Tensor forward = differentiator.tensor(op.outputs[0]);
  const auto with_kept_shape = [&](TensorId y) {
    if (keep) return y;
    // A rank may hold one element of a split dimension, so that the shapes do not tell which dimension it is.
    auto reshape = std::make_shared<Reshape>(kept, kept_dimension(forward, begin, end));
    return differentiator.emit(std::move(reshape), {y}, op)[0];
  };
  const TensorId dy = with_kept_shape(differentiator.gradient_of(op.outputs[0]));
  if (reduction == ReduceKind::sum) {
    auto def = std::make_shared<Elementwise>(scaled(double{scale}), std::vector{type.dtype});
    def->linear = {0};
    for (int axis = begin; axis < end; ++axis) {
      def->expanded.push_back({static_cast<int>(type.shape.rank()) - 1 - axis, type.shape[axis]});
    }
    return differentiator.contribute(x, differentiator.emit(std::move(def), {dy}, op)[0]);
  }
  // Elements that equal the extreme share its gradient evenly, as in TensorFlow.
  const TensorId y = with_kept_shape(op.outputs[0]);
  ScalarGraph graph;
  const int are_equal = graph.apply(ScalarFunction::equal, graph.of_input(0), graph.of_input(1));
  const int mask[] = {are_equal};
  const TensorId equal =
      differentiator.emit(std::make_shared<Elementwise>(graph.program(mask), std::vector{type.dtype}), {x, y}, op)[0];
  auto counting = std::make_shared<Reduce>(ReduceKind::sum, begin, end);
  counting->keep = true;
  const TensorId count = differentiator.emit(std::move(counting), {equal}, op)[0];
  const int share = graph.apply(ScalarFunction::divide, graph.of_input(2), graph.of_input(3));
  const int gradient[] = {graph.apply(ScalarFunction::where, are_equal, share, graph.of_constant(0))};
  auto def = std::make_shared<Elementwise>(graph.program(gradient), std::vector{type.dtype});
  def->linear = {2};
  differentiator.contribute(x, differentiator.emit(std::move(def), {x, y, dy, count}, op)[0]);
}

void contribute_broadcast(const Op& op, TensorId input, TensorId gradient, float scale,
                          Differentiator& differentiator) {
  const Tensor& of = differentiator.tensor(input);
  const TensorType type = of.type;
  const bool is_parameter = of.role == Role::parameter;
  std::vector<SummedRange> ranges = summed_ranges(differentiator.tensor(gradient).type.shape, type.shape);
  if (ranges.empty() && is_parameter) ranges.push_back({});
  require(scale == 1 || !ranges.empty(), "reduce: a gradient that is not summed has a scale");
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    auto def = std::make_shared<Reduce>(ReduceKind::sum, ranges[i].begin, ranges[i].end);
    def->keep = ranges[i].keep;
    def->splits = true;
    const bool last = i + 1 == ranges.size();
    if (last) def->scale = scale;
    if (last && is_parameter) {
      def->accumulate = differentiator.accumulate();
      differentiator.emit_into(std::move(def), {gradient}, {differentiator.parameter_gradient(input)}, op);
      return;
    }
    if (last) def->dtype = type.dtype;
    gradient = differentiator.emit(std::move(def), {gradient}, op)[0];
  }
  differentiator.contribute(input, gradient);
}

}  // namespace trainctl
