// Makes a split: its transforms, targets, mixing and cache.
#include "io/loader/splits/make_split.h"

#include <algorithm>

#include "core/base/format.h"
#include "core/base/table.h"
#include "io/datasets/cache_folder.h"
#include "io/datasets/images/mask_codec.h"
#include "io/loader/inputs/input_plan.h"
#include "io/loader/inputs/same_part.h"
#include "io/loader/options.h"
#include "io/loader/signals/mel_spectrogram.h"
#include "io/loader/splits/split.h"

namespace trainctl {
namespace {

DataSplit::Input transformed(const DatasetGroup& group, const DatasetGroup& training, std::size_t input,
                             const InputPlan& steps) {
  const auto& dataset = group.inputs[input];
  check_alike(*dataset, training.inputs[input]->info().sample, steps.plan.fixed);
  return {dataset, transform_of(steps, training.inputs[input]->info().sample, dataset->info().dtype)};
}

// Makes the targets of a split. Masks get the transforms of the first input's images, and targets that are images get
// those of `plan`. `image_steps` are the fixed steps of the first input.
DataSplit::Targets targets_of(const DataOptions& options, const OpenedSplit& split, const DatasetGroup& training,
                              const Transform& images, const std::vector<GeometryStep>& image_steps,
                              const TransformPlan* plan) {
  DataSplit::Targets targets;
  for (std::size_t i = 0; i < split.group.targets.size(); ++i) {
    const auto& dataset = split.group.targets[i];
    DataSplit::Target target{dataset};
    target.input = options.target_is_input();
    target.unused = split.unused[i];
    const DatasetInfo& info = dataset->info();
    if (target.unused) {
      if (info.masks || info.image_targets) target.dataset = split.group.inputs[0];
      targets.push_back(target);
      continue;
    }
    if (info.masks) {
      target.mask = std::make_shared<const Transform>(images, info.weight.rank() > 0 ? no_class : std::uint8_t{0});
    }
    if (info.image_targets && plan) {
      const Shape& stored = training.targets[i]->info().sample;
      check_alike(*dataset, stored, plan->fixed);
      require_same_part(split.group.inputs[0]->info().sample, image_steps, dataset->info().sample, plan->fixed,
                        options.target_transform.has_value());
      target.image = std::make_shared<const Transform>(stored, info.dtype, plan->fixed, plan->augment, plan->affine);
    }
    targets.push_back(std::move(target));
  }
  return targets;
}

// Describes the samples after the fixed steps.
std::string prepared_text(const Transform& transform, const std::vector<GeometryStep>& fixed) {
  std::string text = format("{} {}", to_string(transform.prepared_shape()), name_of(transform.prepared_dtype()));
  for (const GeometryStep& step : fixed) {
    text += format(" {}:{}x{}", static_cast<int>(step.kind), step.height, step.width);
    if (step.spectrogram) text += step.spectrogram->text();
  }
  return text + "\n";
}

// Returns a text that contains everything on which the prepared samples of a split depend.
std::string cache_key(const DatasetGroup& group, const std::vector<DataSplit::Input>& inputs,
                      const std::vector<InputPlan>& plans, const DataSplit::Targets& targets,
                      const TransformPlan* target_plan) {
  std::string key = "3\n";  // version: increased when the same data results in other samples
  for (const Dataset* dataset : group.distinct()) key += dataset->info().fingerprint + "\n";
  for (std::size_t i = 0; i < inputs.size(); ++i) key += prepared_text(*inputs[i].transform, plans[i].plan.fixed);
  for (const DataSplit::Target& target : targets) {
    if (target.image) key += "target " + prepared_text(*target.image, target_plan->fixed);
  }
  return key;
}

// If samples are not read (`reads`), a disk cache is not made: only its space is checked.
MakeCache cache_for(const DataOptions& options, std::string key, bool reads) {
  if (options.cache == CacheKind::memory) return memory_cache;
  const std::string folder = options.cache_path.empty() ? default_cache_folder() : options.cache_path.text;
  if (folder.empty()) {
    throw Error(ErrorKind::config, options.dataset.location,
                "`cache: disk` needs `cache_path`: neither XDG_CACHE_HOME nor HOME is set");
  }
  return [folder, key = std::move(key), reads](std::int64_t samples, std::int64_t used,
                                               std::int64_t row_bytes) -> std::unique_ptr<SampleCache> {
    if (reads) return disk_cache(folder, key, samples, used, row_bytes);
    check_disk_cache(folder, key, used, row_bytes);
    return nullptr;
  };
}

}  // namespace

void check_alike(const Dataset& held_out, const Shape& training, const std::vector<GeometryStep>& fixed) {
  const Shape expected = shape_after(training, fixed);
  Shape shape;
  try {
    shape = shape_after(held_out.info().sample, fixed);
  } catch (const Error& error) {
    data_error(held_out.name_of(0), error.what());
  }
  if (shape == expected) return;
  data_error(held_out.name_of(0),
             format("has shape {}, but samples of the training split have {}", to_string(shape), to_string(expected)),
             format("all samples need the same shape; for images, use `resize: [height, width]` in {}",
                    list_of_steps(held_out.info())));
}

bool caching_pays(const DataOptions& options, const DatasetGroup& group, const std::vector<InputPlan>& inputs) {
  if (options.cache == CacheKind::none) return false;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!group.inputs[i]->in_memory() || !inputs[i].plan.fixed.empty()) return true;
  }
  return false;
}

std::shared_ptr<const Mixing> mixing_of(const DataOptions& options, const std::vector<InputPlan>& plans,
                                        const DatasetGroup& training) {
  const TransformPlan& plan = plans[0].plan;
  const auto mixed = std::find_if(plans.begin(), plans.end(), [](const InputPlan& p) { return !p.plan.mixes.empty(); });
  if (mixed == plans.end()) return nullptr;
  const SourceLocation& location = mixed->plan.mixes[0].location;
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorKind::config, location, "mixup and cutmix mix whole samples, but " + what, "leave them out");
  };
  if (plans.size() > 1) refuse(format("the samples have {}", counted(plans.size(), "input")));
  std::int64_t classes = -1;
  for (const auto& target : training.targets) {
    const DatasetInfo& info = target->info();
    const std::int64_t own = options.target_is_input() ? 0 : info.classes;
    if (own > 0 && (info.target.rank() > 0 || info.masks)) refuse("the targets are classes of positions");
    if (info.weight.rank() > 0) refuse("the weights are weights of positions");
    classes = classes < 0 ? own : std::min(classes, own);
  }
  const Shape sample = shape_after(shape_after(training.inputs[0]->info().sample, plan.fixed), plan.augment);
  return std::make_shared<Mixing>(plan.mixes, static_cast<std::uint32_t>(plan.augment.size()), sample, classes);
}

std::shared_ptr<const DataSplit> make_split(const DataOptions& options, std::uint64_t seed, const OpenedSplit& split,
                                            const DatasetGroup& training, const std::vector<InputPlan>& plans,
                                            const TransformPlan* target_plan, SampleClassWeights class_weights,
                                            std::shared_ptr<const Mixing> mixing, bool reads) {
  std::vector<DataSplit::Input> inputs;
  for (std::size_t i = 0; i < plans.size(); ++i) inputs.push_back(transformed(split.group, training, i, plans[i]));
  DataSplit::Targets targets =
      targets_of(options, split, training, *inputs[0].transform, plans[0].plan.fixed, target_plan);
  MakeCache cache;
  if (caching_pays(options, split.group, plans)) {
    cache = cache_for(options, cache_key(split.group, inputs, plans, targets, target_plan), reads);
  }
  return std::make_shared<DataSplit>(
      std::move(inputs), std::move(targets), split.subset,
      DataSplit::Options{seed, options.on_error, std::move(cache), std::move(class_weights), std::move(mixing)});
}

}  // namespace trainctl
