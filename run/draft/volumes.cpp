// Writes a config for folders of NIfTI volumes.
#include <algorithm>
#include <string>
#include <vector>

#include "core/base/format.h"
#include "core/base/table.h"
#include "io/datasets/class_folders.h"
#include "io/datasets/volumes/nifti.h"
#include "run/draft/class_splits.h"
#include "run/draft/draft.h"

namespace trainctl {
namespace {

bool has_volumes(const std::string& folder) { return !files_below(folder, is_nifti_name).empty(); }

// Two or three convolutions, with a pooling between them as long as the volumes are large enough.
std::string layers_for(const Shape& sample) {
  std::int64_t side = std::min({sample[0], sample[1], sample[2]});
  std::string text;
  for (const int filters : {16, 32, 64}) {
    if (filters == 64 && side < 4) break;
    text += format("    - conv3d: {{filters: {}, kernel_size: 3, padding: same, activation: relu}}\n", filters);
    if (filters == 64 || side < 4) continue;
    text += "    - max_pooling3d: {pool_size: 2}\n";
    side /= 2;
  }
  return text;
}

}  // namespace

bool holds_volumes(const std::string& folder) { return has_class_splits(folder, has_volumes); }

std::vector<Draft> draft_for_volumes(const DraftRequest& request) {
  refuse_targets(request, "the classes of volumes are their folders");
  const ClassSplits splits = class_splits(request.path, has_volumes);
  const std::string data = "data:\n  dataset: nifti\n" + splits_text(request, splits);
  const DataInfo info = info_of(request, data, false);
  require_two_classes(info, splits.training);
  const Shape& sample = info.inputs[0].sample;
  const std::int64_t classes = info.targets[0].classes;
  Draft draft;
  draft.file = request.name + ".yaml";
  draft.summary = format("convolutions over volumes of {}, {}, {}", to_string(sample), counted(classes, "class"),
                         samples_text(info));
  draft.text =
      head_text(draft.file, format("Volumes of {} ({}): {}.", counted(classes, "class"),
                                   list_text(info.targets[0].class_names), samples_text(info))) +
      data +
      format(
          "  shape: [{}, {}, {}, {}]         # depth, height, width, channels\n"
          "  classes: {}\n"
          "  transform:\n"
          "    - normalize: measured         # each channel to mean 0 and deviation 1\n"
          "\nmodel:\n"
          "  layers:\n"
          "{}"
          "    - global_average_pooling3d\n"
          "    - dense: {{units: 64, activation: relu}}\n"
          "    - dropout: 0.3\n"
          "    - dense: {{units: {}, activation: softmax}}\n\n",
          sample[0], sample[1], sample[2], sample[3], classes, layers_for(sample), classes) +
      train_text("sparse_categorical_crossentropy", "accuracy",
                 std::min<std::int64_t>(suitable_batch(info.training_samples), 8),
                 suitable_epochs(info.training_samples), 1e-3,
                 "  schedule: {name: cosine, warmup: 1 epoch}\n\n"
                 "checkpoint:\n  monitor: val_accuracy           # the metric by which checkpoints/best is chosen\n");
  return {draft};
}

}  // namespace trainctl
