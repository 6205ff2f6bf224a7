// Writes configs for folders of images: a recommended one, a small one and a large one.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/file_names.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/table.h"
#include "core/base/terminal_text.h"
#include "io/datasets/images/image_files.h"
#include "run/draft/class_splits.h"
#include "run/draft/draft.h"
#include "run/draft/image_look.h"
#include "run/draft/pair_folders.h"
#include "run/draft/pair_names.h"

namespace trainctl {
namespace {

// Properties of some of the images.
struct ImageLook {
  std::int64_t side = 0;  // the median of the shorter sides
  bool alike = true;      // all images are squares of this side
  bool gray = true;
};

constexpr std::int64_t smallest_side = 8;  // smaller images are enlarged, so that the networks can halve them

bool has_images(const std::string& folder) { return !list_images(folder).images.empty(); }

std::vector<std::string> images_of(const std::string& split) {
  return files_of_classes(split, [](const std::string& folder) { return list_images(folder).images; });
}

// The paths of the images in a split, which may be "".
std::vector<std::string> paths_of(const std::string& split) {
  if (split.empty()) return {};
  std::vector<std::string> paths = images_of(split);
  for (std::string& path : paths) path = split + "/" + path;
  return paths;
}

// Decodes some images of the folder. Throws Error{data} if none of them can be read.
ImageLook look_at_images(const std::string& folder) {
  ImageLook look;
  std::vector<std::int64_t> sides;
  Sample sample;
  for (const std::string& image : tried_images(paths_of(folder))) {
    if (!failure_to_read(image, sample).empty()) continue;
    sides.push_back(std::min(sample.shape[0], sample.shape[1]));
    look.alike = look.alike && sample.shape[0] == sample.shape[1] && sides.back() == sides.front();
    look.gray = look.gray && is_gray(sample);
  }
  if (sides.empty()) {
    throw Error(ErrorKind::data,
                folder + ": none of the images that were tried can be read: " + unreadable_images({paths_of(folder)}));
  }
  std::nth_element(sides.begin(), sides.begin() + std::ssize(sides) / 2, sides.end());
  look.side = sides[sides.size() / 2];
  return look;
}

// A network, and the size of images that suits it.
struct ImageModel {
  std::string suffix;  // suffix of the config's file name
  std::string preset;  // empty: a few convolutions
  std::int64_t side = 0;
  double learning_rate = 1e-3;
};

std::vector<ImageModel> models_for(std::int64_t stored) {
  const std::int64_t side = std::max(stored, smallest_side);
  if (side <= 40) return {{"", "resnet20", side}, {"-small", "", side}, {"-large", "resnet18", 64}};
  if (side <= 100) return {{"", "resnet18", 64}, {"-small", "", 32}, {"-large", "resnet50", 96, 3e-4}};
  return {{"", "resnet18", 128}, {"-small", "", 64}, {"-large", "resnet50", 224, 3e-4}};
}

std::string section_of_model(const ImageModel& model, std::int64_t classes) {
  if (!model.preset.empty()) {
    return format("model:\n  preset: {}                # others: `trainctl init --list`\n  with: {{classes: {}}}\n\n",
                  model.preset, classes);
  }
  return small_network_text(classes);
}

std::string steps_text(const ImageModel& model, const ImageLook& look) {
  const bool as_they_are = look.alike && look.side == model.side;
  std::string text =
      "  transform:                      # always, in this order; `predict` applies them to photos of any size\n";
  const std::int64_t before = as_they_are ? model.side : model.side + model.side / 8;
  text += format("    - resize: {}                  # the shorter side\n    - center_crop: {}\n", before, before);
  text +=
      look.gray ? "    - rescale: 1/255\n" : "    - normalize: imagenet         # to about mean 0 and deviation 1\n";
  text += "  augment:                        # in training only\n";
  text += as_they_are ? format("    - random_crop: {{size: {}, padding: {}}}\n", model.side,
                               std::max<std::int64_t>(model.side / 8, 1))
                      : format("    - random_crop: {}\n", model.side);
  return text + "    - random_flip: horizontal     # not for digits and text\n";
}

// A note on two classes with images of the same names, which may be pairs of images; "" for others.
std::string note_on_pairs(const std::vector<std::string>& classes, const DraftRequest& request) {
  if (classes.size() != 2 || request.targets != TargetsAre::found_out) return "";
  const PairSplits pairs = pair_splits(request.path, TargetsAre::values);
  if (!pairs.training.found()) {
    if (!are_names_of_pairs(classes[0], classes[1]) && !are_names_of_pairs(classes[1], classes[0])) return "";
    return format(
        "the folders '{}' and '{}' are taken for classes; for pairs of images, an image and its target need the same "
        "name, apart from the ending, or a table must name both",
        classes[0], classes[1]);
  }
  return format(
      "the folders '{}' and '{}' are taken for classes; if the images of one are the targets of those of the "
      "same names in the other, use --targets values",
      classes[0], classes[1]);
}

}  // namespace

bool holds_images(const std::string& folder) { return has_class_splits(folder, has_images); }

std::vector<Draft> draft_for_images(const DraftRequest& request) {
  if (request.targets != TargetsAre::classes) refuse_targets(request, "the classes of images are their folders");
  const ClassSplits splits = class_splits(request.path, has_images);
  const ImageLook look = look_at_images(splits.training);
  const std::string unreadable =
      unreadable_images({paths_of(splits.training), paths_of(splits.validation), paths_of(splits.test)});
  const std::string data =
      "data:\n  dataset: image_folder\n" + splits_text(request, splits) +
      (unreadable.empty() ? "" : "  on_error: skip                  # " + in_comment(unreadable) + "\n");
  const DataInfo info = info_of(request, data + "  transform: [{resize: [8, 8]}]\n", false);
  require_two_classes(info, splits.training);
  const std::int64_t classes = info.targets[0].classes;
  std::string left_out;  // text on what all splits left out
  for (const std::string& warning : info.warnings) left_out += "; " + warning;
  if (!unreadable.empty()) left_out += "; " + terminal_word(unreadable);
  std::vector<Draft> drafts;
  for (const ImageModel& model : models_for(look.side)) {
    Draft draft;
    draft.file = request.name + model.suffix + ".yaml";
    draft.summary = format("{} on images of {}x{}", model.preset.empty() ? "a few convolutions" : model.preset,
                           model.side, model.side);
    if (drafts.empty() && !left_out.empty()) draft.summary += format(", {}{}", samples_text(info), left_out);
    draft.text =
        head_text(draft.file, format("Images of {} ({}): {}.", counted(classes, "class"),
                                     list_text(info.targets[0].class_names), samples_text(info) + left_out)) +
        data + format("  shape: [{}, {}, {}]\n  classes: {}\n", model.side, model.side, look.gray ? 1 : 3, classes) +
        steps_text(model, look) + "\n" + section_of_model(model, classes) +
        train_text("sparse_categorical_crossentropy", "accuracy", suitable_batch(info.training_samples),
                   suitable_epochs(info.training_samples), model.learning_rate,
                   "  schedule: {name: cosine, warmup: 1 epoch}\n\n"
                   "checkpoint:\n  monitor: val_accuracy           # the metric by which checkpoints/best is chosen\n");
    drafts.push_back(std::move(draft));
  }
  if (const std::string note = note_on_pairs(info.targets[0].class_names, request); !note.empty()) {
    drafts[0].notes.push_back(note);
  }
  return drafts;
}

}  // namespace trainctl
