// Crops and resizes are steps before the network; scaling is the format of the input. What is random in training is not
// done in prediction.
#include "run/export/preprocessing.h"

#include "core/base/format.h"
#include "io/datasets/tables/csv_table.h"
#include "io/loader/inputs/input_plan.h"

namespace trainctl {
namespace {

constexpr const char* without = "export without --preprocess, and apply the transforms before the network";

using Kind = GeometryStep::Kind;

// The borders around the rectangle in the middle of an image of this shape.
Borders crop_to(const GeometryStep& step, const Shape& image) {
  Borders borders;
  const std::array<std::int64_t, 2> sizes{step.height, step.width};
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const std::int64_t left = image[static_cast<std::int64_t>(axis)] - sizes[axis];
    if (left < 0) throw Error(ErrorKind::config, step.place, "this crop is larger than the image", without);
    borders.before[axis] = left / 2;
    borders.after[axis] = left - left / 2;
  }
  return borders;
}

}  // namespace

StoredInput stored_input(const DataOptions& options, const std::string& name, const KeptInput& kept) {
  if (kept.facts.table) {
    throw Error(ErrorKind::config,
                "--preprocess: words and missing values of a table have no counterpart in a network of numbers",
                "export without it: the network then takes what the columns become, standardised");
  }
  const InputPlan plan = kept_plan(options, name, kept, kept.facts.dtype);
  StoredInput result{
      kept.facts.sample, kept.facts.dtype, false, {}, {name, kept.facts.sample, {kept.facts.dtype, {}, {}}}};
  Shape& image = result.input.sample;
  for (const auto* steps : {&plan.plan.fixed, &plan.plan.augment}) {
    for (const GeometryStep& step : *steps) {
      if (step.kind == Kind::center_crop || step.kind == Kind::random_crop) {
        result.steps.push_back({crop_to(step, image)});
        image = {step.height, step.width, image[2]};
      } else if (step.kind == Kind::resize || step.kind == Kind::resize_short) {
        result.any_size = result.any_size || (result.steps.empty() && step.kind == Kind::resize);
        image = shape_behind(image, {step});
        result.steps.push_back({{}, image[0], image[1]});
        result.input.format.dtype = DType::float32;
      }
    }
  }
  if (kept.facts.dtype == DType::int32) return result;
  const Affine& affine = plan.plan.affine;
  check_channels(affine, image.rank() == 0 ? 1 : image.back());
  result.input.format.scale = {affine.scale.begin(), affine.scale.end()};
  result.input.format.offset = {affine.offset.begin(), affine.offset.end()};
  return result;
}

}  // namespace trainctl
