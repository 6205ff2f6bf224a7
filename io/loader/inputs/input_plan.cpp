// Makes the plan of an input's transforms, with statistics that are measured or that a run kept.
#include "io/loader/inputs/input_plan.h"

#include <algorithm>

#include "core/base/format.h"
#include "core/base/table.h"
#include "core/graph/ops/normalization/normalize.h"
#include "io/loader/images/augmentation.h"
#include "io/loader/inputs/kept_input.h"
#include "io/loader/options.h"

namespace trainctl {
namespace {

// Returns the statistics that a run measured, one after another.
class KeptStatistics final : public StatisticsSource {
 public:
  explicit KeptStatistics(const std::vector<Statistics>& kept) : kept_(kept) {}

  Statistics measure(const TransformPlan&) override {
    if (next_ == kept_.size())
      throw Error(ErrorKind::data, "the checkpoint does not hold the statistics of `normalize: measured`");
    return kept_[next_++];
  }

 private:
  const std::vector<Statistics>& kept_;
  std::size_t next_ = 0;
};

// Throws Error{config} if a step of targets normalizes another number of channels than they have.
void check_target_channels(const DataOptions& options, const Choice& step, const Affine& affine, const Shape& targets) {
  const std::int64_t channels = as_image(nullptr, DType::uint8, targets).channels;
  if (affine.uniform() || std::ssize(affine.scale) == channels) return;
  throw Error(ErrorKind::config, step.location,
              format("{} has values for {}, but the targets have {}", step.name,
                     counted(affine.scale.size(), "channel"), counted(channels, "channel")),
              options.target_transform ? "set one value for each channel, or one for all"
                                       : "set `target_transform` to the steps of the targets");
}

// The steps of `target_transform` or, without it, those of `transform`.
TransformPlan target_steps(const DataOptions& options, const std::string& name, const DatasetInfo& targets,
                           StatisticsSource& statistics) {
  TransformPlan plan;
  plan.affine.then({targets.scale}, {targets.offset});
  const std::vector<Choice>& steps = options.target_transform
                                         ? static_cast<const std::vector<Choice>&>(*options.target_transform)
                                         : options.transform.of(name);
  for (const Choice& choice : steps) {
    choice.as<TransformOptions>().add(choice.location, plan, statistics);
    check_target_channels(options, choice, plan.affine, targets.sample);
  }
  return plan;
}

// Makes a random crop cut out the part of a target that the images' crop cuts out of its image. The shapes are those
// before the crop.
void scale_crop(const Shape& image, const Shape& target, GeometryStep& crop) {
  if (target[0] % image[0] != 0 || target[1] % image[1] != 0) {
    throw Error(ErrorKind::config, crop.location,
                format("random_crop cannot cut out the same part of images of {}x{} and of targets of {}x{}: the "
                       "height and the width of the targets must be whole multiples of those of the images",
                       image[0], image[1], target[0], target[1]),
                "resize them in `transform` and `target_transform`, or leave random_crop out");
  }
  crop.scale_y = target[0] / image[0];
  crop.scale_x = target[1] / image[1];
  crop.height *= crop.scale_y;
  crop.width *= crop.scale_x;
}

}  // namespace

InputPlan plan_input(const DataOptions& options, const DatasetInfo& info, const std::vector<DType>& stored,
                     const std::string& name, StatisticsSource& statistics) {
  InputPlan result;
  result.plan.affine.then({info.scale}, {info.offset});
  result.plan.sampling_rate = info.sampling_rate;
  for (const auto* list : {static_cast<const std::vector<Choice>*>(&options.transform.of(name)),
                           static_cast<const std::vector<Choice>*>(&options.augment.of(name))}) {
    for (const Choice& choice : *list) {
      if (info.dtype == DType::int32) {
        throw Error(ErrorKind::config, choice.location,
                    format("{} changes values, but the samples are tokens for the network's embedding", choice.name));
      }
      choice.as<TransformOptions>().add(choice.location, result.plan, statistics);
    }
  }
  result.stored = !options.target_is_input() && keeps_bytes(result.plan.mixes) &&
                  std::all_of(stored.begin(), stored.end(), [&](DType type) {
                    return stays_as_stored(type, result.plan.fixed, result.plan.augment);
                  });
  return result;
}

TransformPlan plan_targets(const DataOptions& options, const std::string& name, const DatasetInfo& images,
                           const TransformPlan& of_images, const DatasetInfo& targets, StatisticsSource& statistics) {
  TransformPlan plan = target_steps(options, name, targets, statistics);
  for (const Choice& step : options.augment.of(name)) {
    step.as<TransformOptions>().add(step.location, plan, statistics);
  }
  plan.mixes.clear();  // the mixing of samples mixes their targets, too
  const Shape prepared = shape_after(images.sample, of_images.fixed);
  const Shape target = shape_after(targets.sample, plan.fixed);
  ImageSize image{prepared[0], prepared[1]};  // before each step
  for (GeometryStep& step : plan.augment) {
    if (step.kind == GeometryStep::Kind::random_crop) {
      image = {step.height, step.width};
      scale_crop(prepared, target, step);
    }
    if (step.kind != GeometryStep::Kind::augmentation) continue;
    step.augmentation = step.augmentation->of_targets(image);
    if (!step.augmentation) step.kind = GeometryStep::Kind::none;
  }
  return plan;
}

Affine kept_target_scaling(const DataOptions& options, const std::string& name, const KeptInput& kept) {
  KeptStatistics statistics(kept.measured);
  return target_steps(options, name, kept.info, statistics).affine;
}

InputPlan kept_plan(const DataOptions& options, const std::string& name, const KeptInput& kept, DType stored) {
  KeptStatistics statistics(kept.measured);
  return plan_input(options, kept.info, {stored}, name, statistics);
}

std::shared_ptr<const Transform> transform_of(const InputPlan& plan, const Shape& stored, DType dtype) {
  return std::make_shared<const Transform>(stored, dtype, plan.plan.fixed, plan.plan.augment,
                                           plan.stored ? std::nullopt : std::optional(plan.plan.affine));
}

SampleFormat byte_format(const Affine& affine, const Shape& sample) {
  check_channels(affine, as_image(nullptr, DType::uint8, sample).channels);
  return {DType::uint8, {affine.scale.begin(), affine.scale.end()}, {affine.offset.begin(), affine.offset.end()}};
}

}  // namespace trainctl
