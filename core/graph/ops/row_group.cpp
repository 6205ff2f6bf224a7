// Shapes and work of ops that run together, row by row.
#include "core/graph/ops/row_group.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/graph/ops/attributes.h"
#include "core/graph/ops/elementwise/elementwise.h"
#include "core/graph/ops/reduce.h"

namespace trainctl {
namespace {

std::vector<TensorType> types_of(const std::vector<int>& numbers, const std::vector<TensorType>& types) {
  std::vector<TensorType> found;
  for (const int number : numbers) found.push_back(types.at(static_cast<std::size_t>(number)));
  return found;
}

bool begins_with(const Shape& shape, std::span<const std::int64_t> rows) {
  if (shape.rank() < std::ssize(rows)) return false;
  return std::equal(rows.begin(), rows.end(), shape.sizes().begin());
}

// Whether a tensor that is broadcast to `rank` dimensions is the same for all rows.
bool is_same_for_all(const Shape& shape, std::int64_t rank, std::int64_t row_dimensions) {
  for (std::int64_t d = 0; d < shape.rank() - (rank - row_dimensions); ++d) {
    if (shape[d] != 1) return false;
  }
  return true;
}

}  // namespace

std::string RowGroup::attributes() const {
  AttributeText text;
  for (const SubOp& of : ops) text.word(format("[{} {}]", of.def->kind(), of.def->attributes()));
  return text.value("row_dimensions", row_dimensions).text();
}

std::vector<TensorType> RowGroup::types(std::span<const TensorType> inputs) const {
  std::vector<TensorType> types(inputs.begin(), inputs.end());
  for (const SubOp& of : ops) {
    const std::vector<TensorType> written = of.def->outputs(types_of(of.inputs, types));
    for (std::size_t i = 0; i < written.size(); ++i) {
      types.resize(std::max(types.size(), static_cast<std::size_t>(of.outputs[i]) + 1));
      types[static_cast<std::size_t>(of.outputs[i])] = written[i];
    }
  }
  return types;
}

std::vector<std::int64_t> RowGroup::row_sizes(const std::vector<TensorType>& types) const {
  const SubOp& first = ops.at(0);
  const bool reduces = dynamic_cast<const Reduce*>(first.def.get()) != nullptr;
  const Shape& shape = types.at(static_cast<std::size_t>((reduces ? first.inputs : first.outputs)[0])).shape;
  return {shape.sizes().begin(), shape.sizes().begin() + row_dimensions};
}

std::vector<TensorType> RowGroup::outputs(std::span<const TensorType> inputs) const {
  require(std::ssize(inputs) == inputs_count, "row_group: the ops have other inputs");
  const std::vector<TensorType> all = types(inputs);
  return {all.begin() + inputs_count, all.begin() + inputs_count + outputs_count};
}

OutputPlacements RowGroup::placements(const PlacementQuery& query) const {
  const std::vector<TensorType> all = types(query.input_types);
  std::vector<Placement> found(query.inputs.begin(), query.inputs.end());
  found.resize(all.size());
  for (const SubOp& of : ops) {
    std::vector<Placement> placed;
    for (const int number : of.inputs) placed.push_back(found[static_cast<std::size_t>(number)]);
    const std::vector<TensorType> read = types_of(of.inputs, all), written = types_of(of.outputs, all);
    OutputPlacements answer = of.def->placements({query.axis, placed, read, written, {}, {}, {}});
    if (!answer.problem.empty()) return answer;
    for (std::size_t i = 0; i < of.outputs.size(); ++i)
      found[static_cast<std::size_t>(of.outputs[i])] = answer.outputs[i];
  }
  return {{found.begin() + inputs_count, found.begin() + inputs_count + outputs_count}, {}};
}

double RowGroup::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  const std::vector<TensorType> all = types(inputs);
  double sum = 0;
  for (const SubOp& of : ops) {
    sum += of.def->flops(types_of(of.inputs, all), types_of(of.outputs, all));
  }
  return sum;
}

bool is_sum_of_rows(const OpDef& def, const TensorType& input, std::int64_t row_dimensions) {
  const auto* reduce = dynamic_cast<const Reduce*>(&def);
  if (reduce == nullptr || reduce->reduction != ReduceKind::sum || reduce->accumulate) return false;
  if (reduce->begin != 0 || reduce->end != row_dimensions || reduce->dtype != DType::float32) return false;
  std::int64_t columns = 1;
  for (std::int64_t d = row_dimensions; d < input.shape.rank(); ++d) columns *= input.shape[d];
  return input.dtype == DType::float32 && columns > 1;
}

std::optional<std::vector<bool>> inputs_of_all_rows(const OpDef& def, std::span<const TensorType> inputs,
                                                    std::span<const std::int64_t> rows) {
  const auto row_dimensions = std::ssize(rows);
  if (const auto* reduce = dynamic_cast<const Reduce*>(&def)) {
    const Shape& x = inputs[0].shape;
    if (begins_with(x, rows) && is_sum_of_rows(def, inputs[0], row_dimensions)) return std::vector{false};
    const bool fits = begins_with(x, rows) && reduce->begin >= row_dimensions && reduce->end == x.rank() &&
                      reduce->begin < reduce->end && !reduce->accumulate;
    return fits ? std::optional(std::vector{false}) : std::nullopt;
  }
  if (dynamic_cast<const Elementwise*>(&def) == nullptr) return std::nullopt;
  const Shape y = def.outputs(inputs)[0].shape;
  if (!begins_with(y, rows)) return std::nullopt;
  std::vector<bool> found;
  for (const TensorType& input : inputs) {
    const bool same = is_same_for_all(input.shape, y.rank(), row_dimensions);
    if (!same && (input.shape.rank() != y.rank() || !begins_with(input.shape, rows))) return std::nullopt;
    found.push_back(same);
  }
  return found;
}

}  // namespace trainctl
