// Writes a config for images and their masks: a small U-Net with a class for each pixel.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/file_names.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/table.h"
#include "io/datasets/images/image_files.h"
#include "io/datasets/images/mask_codec.h"
#include "run/draft/class_splits.h"
#include "run/draft/draft.h"

namespace trainctl {
namespace {

// The folders of the images and of the masks of a split.
struct MaskFolders {
  std::string images, masks;

  bool found() const { return !images.empty(); }
};

// The folders of all splits; those of the last two may be absent.
struct MaskSplits {
  MaskFolders training, validation, test;
};

bool has_image_files(const std::string& folder) {
  return !folder.empty() && is_folder(folder) && !list_images(folder).images.empty();
}

// The images and masks that lie side by side in a folder.
MaskFolders masks_in(const std::string& folder) {
  static const std::vector<std::string> images{"images", "image", "imgs", "img"};
  static const std::vector<std::string> masks{"masks",        "mask",          "labels",      "annotations",
                                              "segmentation", "segmentations", "ground_truth"};
  const MaskFolders found{first_in_folder(folder, images), first_in_folder(folder, masks)};
  return has_image_files(found.images) && has_image_files(found.masks) ? found : MaskFolders();
}

// Looks for folders with the usual names: images and masks side by side, in a folder for each split, or with a folder
// for each split in both. Returns none if there are no such folders with images.
MaskSplits splits_in(const std::string& folder) {
  MaskSplits splits;
  const MaskFolders all = masks_in(folder);
  const auto split = [&](NamedSplit name) -> MaskFolders {
    if (!all.found()) {
      const std::string path = split_folder(folder, name);
      return path.empty() ? MaskFolders() : masks_in(path);
    }
    const MaskFolders inner{split_folder(all.images, name), split_folder(all.masks, name)};
    return has_image_files(inner.images) && has_image_files(inner.masks) ? inner : MaskFolders();
  };
  splits.training = split(NamedSplit::training);
  if (!splits.training.found()) return {all, {}, {}};
  splits.validation = split(NamedSplit::validation);
  splits.test = split(NamedSplit::test);
  return splits;
}

// The same in the folder or, if it has none, in its only folder, and so on.
MaskSplits mask_splits(const std::string& folder) {
  for (std::string root = folder; !root.empty(); root = only_folder(root)) {
    MaskSplits splits = splits_in(root);
    if (splits.training.found()) return splits;
  }
  return {};
}

constexpr std::size_t most_classes = 64;
constexpr std::int64_t smallest_mask_side = 8, largest_mask_side = 128;

// What the masks of all splits hold, and how large they are.
struct MaskLook {
  std::array<bool, 256> values{};
  std::vector<std::int64_t> heights, widths;

  std::int64_t number_of_values() const { return std::count(values.begin(), values.end(), true); }
};

// Decodes a mask. The errors of decode_mask() also tell how images become targets whose values are learned.
Shape decoded_mask(const std::vector<std::byte>& file, const std::string& path, std::vector<std::byte>& pixels) {
  try {
    return decode_mask(file.data(), std::ssize(file), path, pixels);
  } catch (const Error& error) {
    throw Error(error.kind(), format("{}; to learn the values of these images instead of classes, use --targets values",
                                     error.what()));
  }
}

// Reads the masks of a folder, which are PNG files. Throws Error{data} for masks that cannot be decoded.
void look_at_masks(const std::string& folder, MaskLook& look) {
  Sample sample;
  std::vector<std::byte> pixels;
  for (const std::string& name : list_images(folder).images) {
    if (!has_ending(name, {".png"})) continue;
    const std::string path = folder + "/" + name;
    read_whole_file(path, sample);
    const Shape shape = decoded_mask(sample.scratch, path, pixels);
    look.heights.push_back(shape[0]);
    look.widths.push_back(shape[1]);
    for (const std::byte value : pixels) look.values[std::to_integer<std::size_t>(value)] = true;
  }
}

// The keys that tell which class the values of masks are, and the number of classes.
struct MaskKeys {
  std::string text;
  std::int64_t classes = 0;
};

// Values that are class numbers remain as they are; 255 beside small ones is no class. Few other values, such as 0 and
// 255, are numbered.
MaskKeys keys_for(const MaskLook& look, const std::string& folder) {
  std::vector<int> values;
  for (int value = 0; value < 256; ++value) {
    if (look.values[static_cast<std::size_t>(value)]) values.push_back(value);
  }
  if (values.size() < 2) {
    data_error(folder, values.empty() ? "has no masks" : format("all pixels of the masks have the value {}", values[0]),
               "masks are gray or palette PNG files that need pixels of at least two classes");
  }
  const bool ignores = values.back() == no_class && values.size() > 2;
  const int largest = ignores ? values[values.size() - 2] : values.back();
  if (largest < static_cast<int>(most_classes)) {
    return {ignores ? format("  ignore: {}                     # pixels without a class\n", no_class) : "",
            largest + 1};
  }
  if (values.size() > most_classes) {
    data_error(folder, format("the masks have {} different values, like images", values.size()),
               "store a class number for each pixel; JPEG and smooth edges change the numbers. To learn values instead "
               "of classes, use --targets values");
  }
  std::string list;
  for (const int value : values) list += format("{}{}", list.empty() ? "" : ", ", value);
  return {format("  values: [{}]                # of the classes in the masks\n", list), std::ssize(values)};
}

// A side of the samples: about the median of the stored ones, and a multiple of 4, since two poolings halve it.
std::int64_t side_for(std::vector<std::int64_t> sides) {
  std::nth_element(sides.begin(), sides.begin() + std::ssize(sides) / 2, sides.end());
  return std::clamp(sides[sides.size() / 2] / 4 * 4, smallest_mask_side, largest_mask_side);
}

std::string folders_text(const DraftRequest& request, const MaskFolders& folders) {
  return format("images: {}, masks: {}", path_text(request, folders.images), path_text(request, folders.masks));
}

std::string location_text(const DraftRequest& request, const MaskSplits& splits) {
  std::string text =
      format("data:\n  dataset: segmentation_folder\n  images: {}\n  masks: {}   # PNG files named like the images\n",
             path_text(request, splits.training.images), path_text(request, splits.training.masks));
  text += splits.validation.found() ? format("  validation: {{{}}}\n", folders_text(request, splits.validation))
                                    : "  validation: {split: 0.2}\n";
  if (splits.test.found()) text += format("  test: {{{}}}\n", folders_text(request, splits.test));
  return text;
}

std::string section_of_model(std::int64_t classes) {
  return format(
      "model:                            # a small U-Net; `preset: unet` is large, for sides that 16 divides\n"
      "  layers:\n"
      "    - conv2d: {{name: down1, filters: 16, kernel_size: 3, padding: same, activation: relu}}\n"
      "    - max_pooling2d: {{pool_size: 2}}\n"
      "    - conv2d: {{name: down2, filters: 32, kernel_size: 3, padding: same, activation: relu}}\n"
      "    - max_pooling2d: {{pool_size: 2}}\n"
      "    - conv2d: {{filters: 48, kernel_size: 3, padding: same, activation: relu}}\n"
      "    - conv2d: {{filters: 48, kernel_size: 3, padding: same, activation: relu}}\n"
      "    - conv2d_transpose: {{name: up2, filters: 32, kernel_size: 2, strides: 2}}\n"
      "    - concatenate: {{from: [down2, up2]}}\n"
      "    - conv2d: {{filters: 32, kernel_size: 3, padding: same, activation: relu}}\n"
      "    - conv2d_transpose: {{name: up1, filters: 16, kernel_size: 2, strides: 2}}\n"
      "    - concatenate: {{from: [down1, up1]}}\n"
      "    - conv2d: {{filters: 16, kernel_size: 3, padding: same, activation: relu}}\n"
      "    - conv2d: {{name: predictions, filters: {}, kernel_size: 1, activation: softmax}}\n\n",
      classes);
}

}  // namespace

bool holds_masks(const std::string& folder) { return mask_splits(folder).training.found(); }

std::vector<Draft> draft_for_masks(const DraftRequest& request) {
  refuse_targets(request, "the targets of images with masks are the classes of the masks");
  const MaskSplits splits = mask_splits(request.path);
  MaskLook look;
  for (const MaskFolders* folders : {&splits.training, &splits.validation, &splits.test}) {
    if (folders->found()) look_at_masks(folders->masks, look);
  }
  const MaskKeys keys = keys_for(look, splits.training.masks);
  const std::int64_t height = side_for(look.heights), width = side_for(look.widths);
  const std::string data =
      location_text(request, splits) +
      format("  shape: [{}, {}, 3]\n  classes: {}\n{}", height, width, keys.classes, keys.text) +
      format("  transform:                      # images and masks alike\n    - resize: [{}, {}]\n", height, width);
  Draft draft;
  draft.file = request.name + ".yaml";
  draft.summary =
      format("a small U-Net on images of {}x{}, {} for each pixel", height, width, counted(keys.classes, "class"));
  const std::string before = data +
                             "    - rescale: 1/255              # of images only\n"
                             "  augment:                        # in training only\n"
                             "    - random_flip: horizontal\n\n" +
                             section_of_model(keys.classes);
  const auto text_for = [&](const DataInfo& info) {
    return head_text(draft.file, format("Images with masks, {} for each pixel: {}.", counted(keys.classes, "class"),
                                        samples_text(info))) +
           before +
           train_text(
               "sparse_categorical_crossentropy", "accuracy, mean_iou",
               std::min<std::int64_t>(suitable_batch(info.training_samples), 16),
               suitable_epochs(info.training_samples), 1e-3,
               "  schedule: {name: cosine, warmup: 1 epoch}\n\n"
               "checkpoint:\n  monitor: val_mean_iou           # the metric by which checkpoints/best is chosen\n");
  };
  draft.text = text_for(info_of_config(request, text_for({})));  // the second text has the numbers of samples
  return {draft};
}

}  // namespace trainctl
