// Writes a config for pairs of images: a network of convolutions whose output is an image.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/file_names.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/table.h"
#include "io/datasets/images/image_files.h"
#include "io/datasets/tables/file_table.h"
#include "run/draft/draft.h"
#include "run/draft/image_look.h"
#include "run/draft/pair_folders.h"

namespace trainctl {
namespace {

constexpr std::int64_t smallest_side = 8, largest_side = 128, largest_small_side = 64;

// What some of the images of one side of the pairs are like.
struct SideLook {
  std::vector<std::int64_t> heights, widths;
  bool gray = true;
  std::set<int> values;  // of gray images

  std::int64_t channels() const { return gray ? 1 : 3; }
  // Whether the images hold few values, as masks do.
  bool may_be_masks() const {
    constexpr std::size_t most = 16;
    return gray && values.size() <= most;
  }
};

SideLook look_at(const std::vector<std::string>& paths, const std::string& place) {
  SideLook look;
  Sample sample;
  for (const std::string& path : tried_images(paths)) {
    if (!failure_to_read(path, sample).empty()) continue;
    look.heights.push_back(sample.shape[0]);
    look.widths.push_back(sample.shape[1]);
    look.gray = look.gray && is_gray(sample);
    if (!look.gray) continue;
    const auto* values = static_cast<const std::uint8_t*>(sample.values);
    for (std::int64_t i = 0; i < sample.shape.count(); i += 3) look.values.insert(values[i]);
  }
  if (look.heights.empty()) {
    data_error(place, "none of the images that were tried can be read: " + unreadable_images({paths}));
  }
  return look;
}

std::int64_t median(std::vector<std::int64_t> sizes) {
  std::nth_element(sizes.begin(), sizes.begin() + std::ssize(sizes) / 2, sizes.end());
  return sizes[sizes.size() / 2];
}

// By which whole factor the targets are larger than the images; 1 if there is none.
std::int64_t factor_of(const SideLook& images, const SideLook& targets) {
  constexpr double tolerance = 0.05;
  constexpr std::int64_t largest = 8;
  const auto ratio = [](const std::vector<std::int64_t>& large, const std::vector<std::int64_t>& small) {
    return static_cast<double>(median(large)) / static_cast<double>(median(small));
  };
  const double rows = ratio(targets.heights, images.heights), columns = ratio(targets.widths, images.widths);
  const std::int64_t factor = std::llround(rows);
  const auto fits = [&](double value) {
    return std::abs(value - static_cast<double>(factor)) <= tolerance * static_cast<double>(factor);
  };
  return factor >= 2 && factor <= largest && fits(rows) && fits(columns) ? factor : 1;
}

// The data of a config: the keys that locate it, and what its images are like.
struct PairData {
  std::string location, name;
  SideLook images, targets;
  bool by_content = false;
  std::string held_out = "  validation: {split: 0.2}\n";
  std::string unreadable;        // text on files that cannot be read; may be empty
  std::string remedy_for_masks;  // what to do if the targets are masks
};

// The paths of the images in a folder, which may be "".
std::vector<std::string> paths_in(const std::string& folder) {
  if (folder.empty()) return {};
  std::vector<std::string> paths = list_images(folder).images;
  for (std::string& path : paths) path = folder + "/" + path;
  return paths;
}

PairData data_in_folders(const DraftRequest& request, const PairSplits& splits) {
  const auto text = [&](const PairFolders& folders) {
    return format("images: {}, target_images: {}", path_text(request, folders.images),
                  path_text(request, folders.targets));
  };
  const PairFolders& training = splits.training;
  PairData data;
  data.location = format("  images: {}\n  target_images: {}   # a target has the name of its image\n",
                         path_text(request, training.images), path_text(request, training.targets));
  data.name = format("the images in {} have those in {} as targets", training.images, training.targets);
  data.images = look_at(paths_in(training.images), training.images);
  data.targets = look_at(paths_in(training.targets), training.targets);
  data.by_content = training.by_content;
  data.unreadable = unreadable_images({paths_in(training.images), paths_in(training.targets),
                                       paths_in(splits.validation.images), paths_in(splits.validation.targets),
                                       paths_in(splits.test.images), paths_in(splits.test.targets)});
  data.remedy_for_masks = format(
      "set `dataset: segmentation_folder` with `images: {}` and `masks: {}`, or rename the "
      "folders to images and masks and call init again",
      path_text(request, training.images), path_text(request, training.targets));
  if (splits.validation.found()) data.held_out = format("  validation: {{{}}}\n", text(splits.validation));
  if (splits.test.found()) data.held_out += format("  test: {{{}}}\n", text(splits.test));
  return data;
}

PairData data_in_table(const DraftRequest& request) {
  const PairTable table = pair_table(request.path, request.targets, request.target);
  require_pairs(request.path, table, request.targets);
  const auto paths = [&](const std::string& column) {
    std::vector<std::string> found;
    for (const FileRow& row : read_file_table(request.path, {column, "image_column"}, {})) found.push_back(row.path);
    return found;
  };
  PairData data;
  data.location = format("  path: {}\n  image_column: {}\n  target_column: {}\n", path_text(request, request.path),
                         scalar_text(table.image_column), scalar_text(table.target_column));
  data.name =
      format("the images of the column '{}' have those of '{}' as targets", table.image_column, table.target_column);
  if (!table.left_out.empty()) data.name += format("; {} is left out", left_out_text(table));
  const std::vector<std::string> images = paths(table.image_column), targets = paths(table.target_column);
  data.images = look_at(images, request.path);
  data.targets = look_at(targets, request.path);
  data.unreadable = unreadable_images({images, targets});
  data.remedy_for_masks =
      "put the images into a folder images and the masks, with the same names, into a folder masks beside it, which "
      "`masks:` of segmentation_folder names";
  return data;
}

// The layers: a small residual network or, for larger targets, one that enlarges its last features (as ESPCN does; Shi
// et al., 2016) and adds the enlarged image.
std::string section_of_model(std::int64_t channels, std::int64_t target_channels, std::int64_t factor) {
  std::string text = "model:\n  inputs: [image]\n  layers:\n";
  for (const int filters : {32, 32, 32, 32}) {
    text += format("    - conv2d: {{filters: {}, kernel_size: 3, padding: same, activation: relu}}\n", filters);
  }
  text += factor > 1
              ? format("    - conv2d_transpose: {{name: change, filters: {}, kernel_size: {}, strides: {}}}\n",
                       target_channels, factor, factor)
              : format("    - conv2d: {{name: change, filters: {}, kernel_size: 3, padding: same}}\n", target_channels);
  if (channels != target_channels) return text + "\n";
  if (factor == 1) return text + "    - add: {from: [image, change]}  # the layers learn the difference\n\n";
  return text + format(
                    "    - upsampling2d: {{name: enlarged, from: image, size: {}, interpolation: bilinear}}\n"
                    "    - add: {{from: [enlarged, change]}}  # the layers learn the difference\n\n",
                    factor);
}

std::string steps_text(std::int64_t height, std::int64_t width, std::int64_t factor) {
  std::string text = format(
      "  transform:                      # of images{}; `predict` applies them to photos of any size\n"
      "    - resize: [{}, {}]\n    - rescale: 1/255\n",
      factor > 1 ? "" : " and targets", height, width);
  if (factor > 1) {
    text +=
        format("  target_transform:\n    - resize: [{}, {}]\n    - rescale: 1/255\n", factor * height, factor * width);
  }
  return text +
         "  augment:                        # in training only, of images and targets alike\n"
         "    - random_flip: horizontal\n\n";
}

}  // namespace

bool holds_pairs(const DraftRequest& request) {
  if (is_folder(request.path)) {
    if (pair_splits(request.path, request.targets).training.found()) return true;
    refuse_several_pairs(request.path, request.targets);
    return false;
  }
  return pair_table(request.path, request.targets, request.target).found();
}

std::vector<Draft> draft_for_pairs(const DraftRequest& request) {
  const PairData data = is_folder(request.path) ? data_in_folders(request, pair_splits(request.path, request.targets))
                                                : data_in_table(request);
  const std::int64_t factor = factor_of(data.images, data.targets);
  const std::int64_t largest = factor > 1 ? largest_small_side : largest_side;
  const std::int64_t height = std::clamp(median(data.images.heights), smallest_side, largest);
  const std::int64_t width = std::clamp(median(data.images.widths), smallest_side, largest);
  const std::int64_t channels = data.images.channels(), target_channels = data.targets.channels();
  std::string text =
      "data:\n  dataset: image_pairs\n" + data.location + data.held_out +
      (data.unreadable.empty() ? "" : "  on_error: skip                  # " + in_comment(data.unreadable) + "\n") +
      format("  shape: [{}, {}, {}]\n", height, width, channels);
  if (channels != target_channels) {
    text += format("  target_color_mode: {}\n", target_channels == 3 ? "rgb" : "grayscale");
  }
  text += steps_text(height, width, factor) + section_of_model(channels, target_channels, factor);
  Draft draft;
  draft.file = request.name + ".yaml";
  const std::string sizes = format("{}x{} with targets of {}x{}", height, width, factor * height, factor * width);
  draft.summary = "a few convolutions on images of " + sizes;
  const auto text_for = [&](const DataInfo& info) {
    return head_text(draft.file, format("Pairs of images, {}: {}.", sizes, samples_text(info))) + text +
           train_text("mean_squared_error",
                      "mean_absolute_error, {name: psnr, mode: max, expression: \"-10 * "
                      "log10(maximum(mean(square(y_true - y_pred), axis=[1, 2, 3]), 1e-10))\"}",
                      std::min<std::int64_t>(suitable_batch(info.training_samples), 16),
                      suitable_epochs(info.training_samples), 1e-3, "  schedule: {name: cosine, warmup: 1 epoch}\n");
  };
  const DataInfo info = info_of_config(request, text_for({}));
  draft.text = text_for(info);  // the second text has the numbers of samples
  draft.notes = info.warnings;
  if (data.by_content) {
    draft.notes.push_back(
        format("{}, which they resemble; if it is the other way round, swap `images` and `target_images`; if the "
               "folders are classes, use --targets classes",
               data.name));
  } else if (!is_folder(request.path)) {
    draft.notes.push_back(data.name);
  }
  if (!data.unreadable.empty()) draft.notes.push_back("skipped: " + data.unreadable);
  if (data.targets.may_be_masks()) {
    draft.notes.push_back(
        format("the values of the targets are learned, but they have only {}, as masks do: for a "
               "class for each pixel, {}",
               counted(data.targets.values.size(), "value"), data.remedy_for_masks));
  }
  return {draft};
}

}  // namespace trainctl
