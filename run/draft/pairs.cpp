// Writes a config for pairs of images: a network of convolutions whose output is an image.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
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

  std::int64_t channels() const { return gray ? 1 : 3; }
  bool is_alike() const {
    const auto one = [](const std::vector<std::int64_t>& sizes) {
      return std::ranges::all_of(sizes, [&](std::int64_t size) { return size == sizes[0]; });
    };
    return one(heights) && one(widths);
  }
};

SideLook look_at(const std::vector<std::string>& paths, const std::string& place) {
  SideLook look;
  Sample sample;
  for (const std::string& path : tried_images(paths)) {
    try {
      read_image_file(path, 3, true, sample);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::data) throw;
      continue;
    }
    look.heights.push_back(sample.shape[0]);
    look.widths.push_back(sample.shape[1]);
    look.gray = look.gray && is_gray(sample);
  }
  if (look.heights.empty()) data_error(place, "none of the images that were tried can be read");
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
};

std::vector<std::string> paths_in(const std::string& folder) {
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
  if (splits.validation.found()) data.held_out = format("  validation: {{{}}}\n", text(splits.validation));
  if (splits.test.found()) data.held_out += format("  test: {{{}}}\n", text(splits.test));
  return data;
}

PairData data_in_table(const DraftRequest& request, const PairTable& table) {
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
  data.images = look_at(paths(table.image_column), request.path);
  data.targets = look_at(paths(table.target_column), request.path);
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

std::string steps_text(const SideLook& targets, std::int64_t height, std::int64_t width, std::int64_t factor) {
  std::string text = format(
      "  transform:                      # of images{}; `predict` applies them to photos of any size\n"
      "    - resize: [{}, {}]\n    - rescale: 1/255\n",
      factor > 1 ? "" : " and targets", height, width);
  if (factor > 1) {
    const bool stored =
        targets.is_alike() && targets.heights[0] == factor * height && targets.widths[0] == factor * width;
    text += "  target_transform:\n";
    if (!stored) text += format("    - resize: [{}, {}]\n", factor * height, factor * width);
    text += "    - rescale: 1/255\n";
  }
  return text +
         "  augment:                        # in training only, of images and targets alike\n"
         "    - random_flip: horizontal\n\n";
}

}  // namespace

bool holds_pairs(const DraftRequest& request) {
  if (is_folder(request.path)) return pair_splits(request.path, request.targets).training.found();
  return request.target.empty() && request.targets != TargetsAre::classes && pair_table(request.path).found();
}

std::vector<Draft> draft_for_pairs(const DraftRequest& request) {
  const PairData data = is_folder(request.path) ? data_in_folders(request, pair_splits(request.path, request.targets))
                                                : data_in_table(request, pair_table(request.path));
  const std::int64_t factor = factor_of(data.images, data.targets);
  const std::int64_t largest = factor > 1 ? largest_small_side : largest_side;
  const std::int64_t height = std::clamp(median(data.images.heights), smallest_side, largest);
  const std::int64_t width = std::clamp(median(data.images.widths), smallest_side, largest);
  const std::int64_t channels = data.images.channels(), target_channels = data.targets.channels();
  std::string text = "data:\n  dataset: image_pairs\n" + data.location + data.held_out +
                     format("  shape: [{}, {}, {}]\n", height, width, channels);
  if (channels != target_channels) {
    text += format("  target_color_mode: {}\n", target_channels == 3 ? "rgb" : "grayscale");
  }
  text += steps_text(data.targets, height, width, factor) + section_of_model(channels, target_channels, factor);
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
        format("{}, which they resemble; if the folders are classes, use --targets classes", data.name));
  } else if (!is_folder(request.path)) {
    draft.notes.push_back(data.name);
  }
  return {draft};
}

}  // namespace trainctl
