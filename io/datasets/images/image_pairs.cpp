// The data set of pairs of images: each sample is an image, and its target is another image.
#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "core/base/file_names.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/table.h"
#include "io/datasets/images/file_images.h"
#include "io/datasets/images/image_files.h"
#include "io/datasets/options.h"
#include "io/datasets/tables/file_table.h"

namespace trainctl {
namespace {

// As in Keras' image_dataset_from_directory.
enum class ColorMode { grayscale, rgb };

}  // namespace

template <>
struct EnumNames<ColorMode> {
  static constexpr EnumName<ColorMode> names[] = {{ColorMode::grayscale, "grayscale"}, {ColorMode::rgb, "rgb"}};
};

namespace {

constexpr const char* remedy_for_names =
    "an image and its target have the same name, apart from the ending; a table names pairs of any names: "
    "`path: pairs.csv` with the columns image and target";

// The columns of a table of pairs.
struct PairColumns {
  std::string image = "image", target = "target";
};

// The files of the pairs: names with the same index belong together.
struct Pairs {
  FileNames images, targets;
  std::string warning;  // about files that are left out; may be empty
};

// The files of a folder by their names without endings.
using FilesByStem = std::map<std::string, std::vector<std::string>>;

FilesByStem files_by_stem(const ImageListing& listing) {
  FilesByStem files;
  for (const std::string& name : listing.images) files[without_ending(name)].push_back(name);
  return files;
}

// Throws Error{data} if an image has no target or a target no image. The error names the first of both.
void require_partners(const std::string& image_folder, const FilesByStem& images, const std::string& target_folder,
                      const FilesByStem& targets) {
  std::vector<std::string> lonely_images, lonely_targets;
  for (const auto& [stem, names] : images) {
    if (!targets.contains(stem)) lonely_images.push_back(names[0]);
  }
  for (const auto& [stem, names] : targets) {
    if (!images.contains(stem)) lonely_targets.push_back(names[0]);
  }
  if (lonely_images.empty() && lonely_targets.empty()) return;
  const auto text = [](const std::vector<std::string>& lonely, const char* lacks, const std::string& partners) {
    const std::string others =
        lonely.size() > 1 ? format(" ({} in all have none)", counted(std::ssize(lonely), "file")) : std::string();
    return format("has no {}: there is no image {}/{} with any ending{}", lacks, partners, without_ending(lonely[0]),
                  others);
  };
  if (lonely_images.empty()) {
    data_error(target_folder + "/" + lonely_targets[0], text(lonely_targets, "image", image_folder), remedy_for_names);
  }
  std::string problem = text(lonely_images, "target", target_folder);
  if (!lonely_targets.empty()) {
    problem += format("; {}/{} {}", target_folder, lonely_targets[0], text(lonely_targets, "image", image_folder));
  }
  data_error(image_folder + "/" + lonely_images[0], problem, remedy_for_names);
}

// The target of an image among the files of the same name: the one with the same ending, or the only one.
std::string target_of(const std::string& image, const std::vector<std::string>& targets, const std::string& folder) {
  if (targets.size() == 1) return targets[0];
  if (std::ranges::find(targets, image) != targets.end()) return image;
  data_error(folder,
             format("has {} targets of the image {}, such as {} and {}", targets.size(), image, targets[0], targets[1]),
             "leave one of them");
}

// The pairs in two folders, which have files of the same names.
Pairs pairs_in_folders(const std::string& image_folder, const std::string& target_folder) {
  const ImageListing images = list_images(image_folder), targets = list_images(target_folder);
  if (images.images.empty()) refuse_no_images(image_folder, images);
  if (targets.images.empty()) refuse_no_images(target_folder, targets);
  const FilesByStem known = files_by_stem(targets);
  require_partners(image_folder, files_by_stem(images), target_folder, known);
  Pairs pairs{{image_folder}, {target_folder}, {}};
  std::map<std::string, std::string> image_of;  // by targets
  for (const std::string& name : images.images) {
    const std::string target = target_of(name, known.at(without_ending(name)), target_folder);
    const auto [other, is_new] = image_of.emplace(target, name);
    if (!is_new) {
      data_error(image_folder, format("has 2 images of the target {}: {} and {}", target, other->second, name),
                 "leave one of them");
    }
    pairs.images.names.push_back(name);
    pairs.targets.names.push_back(target);
  }
  for (const auto& [folder, listing] : {std::pair(&image_folder, &images), std::pair(&target_folder, &targets)}) {
    const std::string left_out = listing->text_of_left_out();
    if (left_out.empty()) continue;
    pairs.warning += format("{}{}: {}", pairs.warning.empty() ? "" : "; ", *folder, left_out);
  }
  return pairs;
}

// The pairs that a table names, relative to its folder.
Pairs pairs_in_table(const std::string& path, const PairColumns& columns) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  Pairs pairs{{folder.string()}, {folder.string()}, {}};
  for (const FileRow& row : read_file_table(path, {columns.image, "image_column"}, {columns.target, "target_column"})) {
    const std::string target = (folder / row.text).string();
    if (row.text.empty() || file_type(target) == FileType::absent || is_folder(target)) {
      data_error(row.place,
                 row.text.empty() ? format("the column '{}' is empty", columns.target)
                                  : format("there is no file {}, the target of {}", target, row.path),
                 "write the file's path relative to the folder of the table");
    }
    pairs.images.names.push_back(row.file);
    pairs.targets.names.push_back(row.text);
  }
  return pairs;
}

struct ImagePairsOptions final : DatasetOptions, PairColumns {
  std::optional<ColorMode> target_color_mode;

  bool holds_image_files() const override { return true; }
  bool holds_image_targets() const override { return true; }

  std::shared_ptr<const Dataset> open(const DataLocation& where, SplitKind split, const DeclaredInfo& declared,
                                      std::uint64_t seed) const override {
    return open_group(where, split, {{declared}, {declared}, {}}, seed).inputs[0];
  }
  DatasetGroup open_group(const DataLocation& where, SplitKind, const DeclaredGroup& declared,
                          std::uint64_t) const override {
    if (declared.targets[0].classes.value_or(0) > 0) {
      throw Error(ErrorKind::config, "`classes` is set, but the targets of image_pairs are images of values",
                  "leave `classes` out; images of class numbers are masks: segmentation_folder");
    }
    Pairs pairs = pairs_at(where);
    const bool skips = declared.inputs[0].skip_unreadable;
    pairs.images.skip_unreadable = pairs.targets.skip_unreadable = skips;
    const std::int64_t channels = declared_channels(declared.inputs[0]);
    const std::string place = where.path.empty() ? pairs.images.folder : where.path.text;
    const std::string target_place = where.path.empty() ? pairs.targets.folder : where.path.text;
    const auto images = std::make_shared<FileImages>(std::move(pairs.images), place, channels);
    const std::int64_t target_channels = target_color_mode ? (*target_color_mode == ColorMode::rgb ? 3 : 1) : channels;
    const auto targets = std::make_shared<FileImages>(std::move(pairs.targets), target_place, target_channels,
                                                      ImageUse::target, std::move(pairs.warning));
    return {{images}, {targets}};
  }

 private:
  Pairs pairs_at(const DataLocation& where) const {
    if (!where.images.empty() && !where.target_images.empty()) {
      return pairs_in_folders(where.images.text, where.target_images.text);
    }
    if (where.path.empty() || !where.images.empty() || !where.target_images.empty()) {
      throw Error(ErrorKind::config, "image_pairs needs either `images` and `target_images`, or `path`");
    }
    if (has_ending(where.path.text, {".csv"})) return pairs_in_table(where.path.text, *this);
    if (exists(where.path.text) && !is_folder(where.path.text)) {
      data_error(where.path.text, "is neither a folder nor a .csv file",
                 "give a folder with the folders images and targets, or a table of files");
    }
    for (const char* name : {"images", "targets"}) {
      if (is_folder(where.path.text + "/" + name)) continue;
      data_error(
          where.path.text, format("has no folder '{}'", name),
          "instead of `path`, set `images` to the folder of the images and `target_images` to that of their targets");
    }
    return pairs_in_folders(where.path.text + "/images", where.path.text + "/targets");
  }
};

}  // namespace

Section image_pairs_choice() {
  return Keys<ImagePairsOptions>(
             "image_pairs",
             "Images as image_folder reads them, and for each another image as its target, for networks whose output "
             "is an image: super-resolution, denoising, colours for gray images. A target has the name of its image, "
             "with any ending, or a table names both. The loss compares values: mean_squared_error or "
             "mean_absolute_error. Targets have the steps of `transform` or, if it is set, of `target_transform`. "
             "Steps of `augment` that move pixels move those of images and targets alike; the other ones change only "
             "images. Of 16-bit PNG files the upper 8 bits are read; for more, use npy.")
      .key("path", &ImagePairsOptions::path,
           "A folder with the folders `images` and `targets`, or a .csv file with a column of images and one of their "
           "targets, relative to its folder. A list of these is one data set; the other keys accept lists, too.")
      .key("images", &ImagePairsOptions::images, "The folder of the images, which may be in subfolders.")
      .key("target_images", &ImagePairsOptions::target_images, "The folder of the targets, with the same subfolders.")
      .key("image_column", &ImagePairsOptions::image, "The column of the images in a table.")
      .key("target_column", &ImagePairsOptions::target, "The column of the targets in a table.")
      .key("target_color_mode", &ImagePairsOptions::target_color_mode,
           "Whether targets are read in gray (one channel) or in colours (three); default: like the images, which have "
           "three channels unless `shape` has one.");
}

}  // namespace trainctl
