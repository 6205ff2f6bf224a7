// Crops become one crop; scaling is the format of the input. What is random in training is not done in prediction.
#include "cmd/export/preprocessing.h"

#include "core/base/format.h"
#include "io/datasets/tables/csv_table.h"
#include "io/loader/kept_plan.h"

namespace trainctl {
namespace {

constexpr const char* without = "export without --preprocess, and apply the transforms before the network";

using Kind = GeometryStep::Kind;

// Moves the borders inwards to the rectangle in the middle of what they leave. `shape` is that of the whole image.
void crop_to(const GeometryStep& step, const Shape& shape, Borders& borders) {
  const std::array<std::int64_t, 2> sizes{step.height, step.width};
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const std::int64_t left =
        shape[static_cast<std::int64_t>(axis)] - borders.before[axis] - borders.after[axis] - sizes[axis];
    if (left < 0) throw Error(ErrorKind::config, step.place, "this crop is larger than the image", without);
    borders.before[axis] += left / 2;
    borders.after[axis] += left - left / 2;
  }
}

}  // namespace

StoredInput stored_input(const DataOptions& options, const std::string& name, const KeptInput& kept) {
  if (kept.facts.table) {
    throw Error(ErrorKind::config,
                "--preprocess: words and missing values of a table have no counterpart in a network of numbers",
                "export without it: the network then takes what the columns become, standardised");
  }
  const InputPlan plan = kept_plan(options, name, kept, kept.facts.dtype);
  StoredInput result{kept.facts.sample, {}, {name, kept.facts.sample, {kept.facts.dtype, {}, {}}}};
  for (const auto* steps : {&plan.plan.fixed, &plan.plan.augment}) {
    for (const GeometryStep& step : *steps) {
      if (step.kind == Kind::resize || step.kind == Kind::resize_short) {
        throw Error(ErrorKind::config, step.place,
                    "--preprocess: this resize has no exact counterpart, since its filter grows with the image",
                    without);
      }
      if (step.kind == Kind::center_crop || step.kind == Kind::random_crop) crop_to(step, result.stored, result.crop);
    }
  }
  if (result.stored.rank() == 3) {
    const auto& [before, after] = result.crop;
    result.input.sample = {result.stored[0] - before[0] - after[0], result.stored[1] - before[1] - after[1],
                           result.stored[2]};
  }
  if (kept.facts.dtype == DType::int32) return result;
  check_channels(plan.plan.affine, result.stored.rank() == 0 ? 1 : result.stored.back());
  const Affine& affine = plan.plan.affine;
  result.input.format.scale = {affine.scale.begin(), affine.scale.end()};
  result.input.format.offset = {affine.offset.begin(), affine.offset.end()};
  return result;
}

void prepend_crop(Graph& graph, const StoredInput& input) {
  if (input.stored == input.input.sample) return;
  const TensorId cropped = graph.inputs[0];
  Tensor whole = graph.tensor(cropped);
  graph.tensors[static_cast<std::size_t>(cropped)].name = whole.name + "/cropped";
  graph.tensors[static_cast<std::size_t>(cropped)].role = Role::activation;
  whole.type.shape = input.stored.with_front(graph.batch);
  const std::string name = whole.name;
  graph.inputs[0] = graph.add_tensor(std::move(whole));
  graph.ops.insert(graph.ops.begin(), Op{std::make_shared<Crop2d>(input.crop), {graph.inputs[0]}, {cropped}, name, {}});
}

}  // namespace trainctl
