// Shapes, placements and gradients of the ops that move values.
#include "core/graph/ops/reshaping/shaping.h"

#include <algorithm>
#include <utility>

#include "core/graph/differentiator.h"
#include "core/graph/ops/attributes.h"
#include "core/graph/placement_rules.h"

namespace trainctl {
namespace {

using Names = std::pair<std::string, std::string>;

// The first of the dimensions from `begin` to `end` that has several elements, or `begin`.
std::size_t first_divisible(const Shape& shape, std::int64_t begin, std::int64_t end) {
  const auto sizes = shape.sizes().begin();
  const auto found = std::find_if(sizes + begin, sizes + end, [](std::int64_t size) { return size > 1; });
  return static_cast<std::size_t>(found == sizes + end ? begin : found - sizes);
}

// Names the dimensions of two shapes with the same number of elements. From the outermost dimension inwards, both
// shapes are divided into pairs of runs of dimensions with equal products. Splitting the outermost dimension of a run
// splits the outermost dimension of the other run as well, so that these two get the same letter. Along the data axis
// this is the dimension of the samples, even if there is one; along others, a dimension with several elements.
Names common_dimensions(const Shape& a, const Shape& b, MeshAxis axis) {
  std::string names_a(static_cast<std::size_t>(a.rank()), '.'), names_b(static_cast<std::size_t>(b.rank()), '.');
  std::int64_t i = 0, j = 0;
  for (char letter = 'a'; i < a.rank() && j < b.rank(); ++letter) {
    const std::int64_t begin_a = i, begin_b = j;
    std::int64_t product_a = a[i++], product_b = b[j++];
    while (product_a != product_b && (i < a.rank() || j < b.rank())) {
      const bool extends_a = j == b.rank() || (i < a.rank() && product_a < product_b);
      (extends_a ? product_a : product_b) *= extends_a ? a[i++] : b[j++];
    }
    const bool samples = axis == MeshAxis::data;
    names_a[samples ? static_cast<std::size_t>(begin_a) : first_divisible(a, begin_a, i)] = letter;
    names_b[samples ? static_cast<std::size_t>(begin_b) : first_divisible(b, begin_b, j)] = letter;
  }
  return {names_a, names_b};
}

// Names only the last dimensions, which have equal sizes, so that both shapes have the same rows.
Names common_rows(const Shape& a, const Shape& b) {
  std::string names_a(static_cast<std::size_t>(a.rank()), '.'), names_b(static_cast<std::size_t>(b.rank()), '.');
  names_a.back() = names_b.back() = 'a';
  return {names_a, names_b};
}

}  // namespace

std::vector<TensorType> Concatenate::outputs(std::span<const TensorType> inputs) const {
  TensorType sum = inputs[0];
  std::int64_t& last = sum.shape[sum.shape.rank() - 1];
  for (const TensorType& input : inputs.subspan(1)) {
    last = checked_add(last, input.shape.back());
    TensorType expected = sum;
    expected.shape[sum.shape.rank() - 1] = input.shape.back();
    require(input == expected, "concatenate: inputs differ in more than the last dimension");
  }
  return {sum};
}

OutputPlacements Concatenate::placements(const PlacementQuery& query) const {
  const std::string x = rows(query.input_types[0]) + ".+S";
  return place_by({std::vector<std::string>(query.inputs.size(), x), {x}}, query);
}

void Concatenate::differentiate(const Op& op, Differentiator& differentiator) const {
  std::vector<std::int64_t> sizes;
  for (TensorId input : op.inputs) sizes.push_back(differentiator.tensor(input).type.shape.back());
  const TensorId dy = differentiator.gradient_of(op.outputs[0]);
  const auto parts = differentiator.emit(std::make_shared<Split>(std::move(sizes)), {dy}, op);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (differentiator.needs_gradient(op.inputs[i])) differentiator.contribute(op.inputs[i], parts[i]);
  }
}

std::string Split::attributes() const {
  std::string text;
  for (std::int64_t size : sizes) text += (text.empty() ? "" : ",") + std::to_string(size);
  return "sizes=" + text;
}

std::vector<TensorType> Split::outputs(std::span<const TensorType> inputs) const {
  std::vector<TensorType> types;
  std::int64_t sum = 0;
  for (std::int64_t size : sizes) {
    types.push_back(inputs[0]);
    types.back().shape[inputs[0].shape.rank() - 1] = size;
    sum += size;
  }
  require(sum == inputs[0].shape.back(), "split: the sizes do not add up to the last dimension");
  return types;
}

OutputPlacements Split::placements(const PlacementQuery& query) const { return place_rows(query, true); }

std::string Reshape::attributes() const { return to_string(shape); }

std::vector<TensorType> Reshape::outputs(std::span<const TensorType> inputs) const {
  require(inputs[0].shape.count() == shape.count(), "reshape: the number of elements differs");
  return {{shape, inputs[0].dtype}};
}

OutputPlacements Reshape::placements(const PlacementQuery& query) const {
  if (kept && query.inputs[0] == split_along(kept->x)) return {{split_along(kept->y)}, {}};
  const Shape& from = query.input_types[0].shape;
  const auto by = [&](const Names& names) { return place_by({{names.first + "+S"}, {names.second + "+S"}}, query); };
  // A tensor with one element is split along dimension 0, that of the samples, and not along the last dimension.
  if (from.count() > 1 && shape.rank() > 0 && from.back() == shape.back()) {
    const OutputPlacements of_rows = by(common_rows(from, shape));
    if (of_rows.problem.empty()) return of_rows;
  }
  return by(common_dimensions(from, shape, query.axis));
}

// The dimension of the result that corresponds to the split dimension of x is split as well.
std::shared_ptr<const OpDef> Reshape::on_shard(std::span<const TensorType> inputs,
                                               std::span<const std::optional<int>> split,
                                               const ShardPosition& ranks) const {
  if (!split[0]) return nullptr;
  const Placement x = split_along(*split[0]);
  const OutputPlacements y = placements({MeshAxis::tensor, {&x, 1}, inputs, outputs(inputs), {}, {}, {}});
  if (!y.problem.empty() || shape[y.outputs[0].dimension] % ranks.count != 0) return nullptr;
  Shape shard = shape;
  shard[y.outputs[0].dimension] /= ranks.count;
  return std::make_shared<Reshape>(std::move(shard), Kept{*split[0], y.outputs[0].dimension});
}

void Reshape::differentiate(const Op& op, Differentiator& differentiator) const {
  const Shape& before = differentiator.tensor(op.inputs[0]).type.shape;
  const TensorId dy = differentiator.gradient_of(op.outputs[0]);
  auto back = std::make_shared<Reshape>(before);
  if (kept) back->kept = Kept{kept->y, kept->x};
  differentiator.contribute(op.inputs[0], differentiator.emit(std::move(back), {dy}, op)[0]);
}

std::string Reorder::attributes() const {
  AttributeText text;
  return text.value("to", name_of(to.dtype)).word(to.format).text();
}

std::vector<TensorType> Reorder::outputs(std::span<const TensorType> inputs) const {
  return {{inputs[0].shape, to.dtype}};
}

OutputPlacements Reorder::placements(const PlacementQuery& query) const { return place_elementwise(query, {0}); }

std::string Cast::attributes() const { return AttributeText().value("to", name_of(to)).text(); }

std::vector<TensorType> Cast::outputs(std::span<const TensorType> inputs) const { return {{inputs[0].shape, to}}; }

OutputPlacements Cast::placements(const PlacementQuery& query) const { return place_elementwise(query, {0}); }

void Cast::differentiate(const Op& op, Differentiator& differentiator) const {
  const TensorId dy = differentiator.gradient_of(op.outputs[0]);
  const auto from = differentiator.tensor(op.inputs[0]).type.dtype;
  differentiator.contribute(op.inputs[0], differentiator.emit(std::make_shared<Cast>(from), {dy}, op)[0]);
}

}  // namespace trainctl
