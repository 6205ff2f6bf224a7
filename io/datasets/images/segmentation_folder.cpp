// The data set of a folder of images and a folder of masks: PNG files named like the images, with a class for each
// pixel.
#include <algorithm>
#include <map>
#include <set>

#include "core/base/file_names.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/hash.h"
#include "core/base/table.h"
#include "io/datasets/images/file_images.h"
#include "io/datasets/images/image_files.h"
#include "io/datasets/images/mask_codec.h"
#include "io/datasets/options.h"

namespace trainctl {
namespace {

// The data set of the masks; `image` is the shape [height, width, channels] of the images.
class FolderMasks final : public Dataset {
 public:
  FolderMasks(FileNames files, const MaskClasses& classes, bool weighs, const Shape& image, std::string warning)
      : files_(std::move(files)), classes_(classes) {
    info_.masks = true;
    info_.classes = classes.classes;
    info_.sample = {image[0], image[1], 1};
    info_.target = {image[0], image[1]};
    if (weighs) info_.weight = info_.target;
    info_.fingerprint =
        format("{} {:016x}", files_.fingerprint(), xxh3(classes.of_value.data(), sizeof classes.of_value));
    info_.warning = std::move(warning);
  }

  const DatasetInfo& info() const override { return info_; }
  std::int64_t size() const override { return std::ssize(files_.names); }
  bool in_memory() const override { return false; }
  std::int32_t label(std::int64_t) const override { return 0; }  // only pixels have classes
  std::string name_of(std::int64_t index) const override { return files_.path(index); }
  void read(std::int64_t index, Sample& sample) const override {
    const std::string path = name_of(index);
    with_remedy(files_.skip_unreadable, "repair the mask, or set `on_error: skip`", [&] {
      read_whole_file(path, sample);
      sample.shape = decode_mask(sample.scratch.data(), std::ssize(sample.scratch), path, sample.buffer);
    });
    classes_.apply(sample.buffer, sample.shape[1], path);
    sample.dtype = DType::uint8;
    sample.values = sample.buffer.data();
  }

 private:
  FileNames files_;
  MaskClasses classes_;
  DatasetInfo info_;
};

struct SegmentationFolderOptions final : DatasetOptions {
  std::vector<std::int64_t> values;
  std::optional<std::int64_t> ignore;

  bool holds_image_files() const override { return true; }
  bool holds_masks() const override { return true; }
  bool weighs_pixels() const override { return ignore.has_value(); }

  std::shared_ptr<const Dataset> open(const DataLocation& where, SplitKind split, const DeclaredInfo& declared,
                                      std::uint64_t seed) const override {
    return open_group(where, split, {{declared}, {declared}, {}}, seed).inputs[0];
  }
  DatasetGroup open_group(const DataLocation& where, SplitKind, const DeclaredGroup& declared,
                          std::uint64_t) const override {
    const MaskClasses classes = mask_classes(declared.targets[0]);
    const bool skips = declared.inputs[0].skip_unreadable;
    FileNames images{folder_of(where, where.images, "images"), {}, skips};
    FileNames masks{folder_of(where, where.masks, "masks"), {}, skips};
    const ImageListing found = list_images(images.folder), found_masks = list_images(masks.folder);
    if (found.images.empty()) refuse_no_images(images.folder, found);
    std::map<std::string, std::string> known;  // by the name without its ending: the PNG file
    for (const std::string& name : found_masks.images) {
      if (has_ending(name, {".png"})) known.emplace(without_ending(name), name);
    }
    std::set<std::string> used;
    for (const std::string& name : found.images) {
      const auto mask = known.find(without_ending(name));
      if (mask == known.end()) {
        data_error(images.folder + "/" + name,
                   format("has no mask: there is no {}/{}.png", masks.folder, without_ending(name)),
                   "masks are PNG files named like their images");
      }
      images.names.push_back(name);
      masks.names.push_back(mask->second);
      used.insert(mask->first);
    }
    std::string warning = found.text_of_left_out();
    if (!warning.empty()) warning = format("{}: {}", images.folder, warning);
    if (warning.empty() && used.size() < known.size()) {
      warning = format("{}: {} masks have no image", masks.folder, known.size() - used.size());
    }
    const std::string place = images.folder;
    const auto inputs = std::make_shared<FileImages>(std::move(images), place, declared_channels(declared.inputs[0]));
    const auto targets = std::make_shared<FolderMasks>(std::move(masks), classes, weighs_pixels(),
                                                       inputs->info().sample, std::move(warning));
    return {{inputs}, {targets}};
  }

 private:
  static std::string folder_of(const DataLocation& where, const Path& declared, const char* name) {
    if (!declared.empty()) return declared.text;
    if (!where.path.empty()) return where.path.text + "/" + name;
    throw Error(ErrorKind::config, format("segmentation_folder needs `path`, or `images` and `masks`"));
  }
  MaskClasses mask_classes(const DeclaredInfo& declared) const {
    MaskClasses classes;
    classes.classes = declared.known_classes().value_or(std::ssize(values));
    if (classes.classes == 0) {
      throw Error(ErrorKind::config, "segmentation_folder needs `classes`, the number of classes of its masks");
    }
    if (classes.classes > no_class || (!values.empty() && std::ssize(values) != classes.classes)) {
      throw Error(ErrorKind::config, values.empty()
                                         ? format("masks have at most {} classes, not {}", no_class, classes.classes)
                                         : format("`values` has {}, but there are {}", counted(values.size(), "number"),
                                                  counted(classes.classes, "class")));
    }
    classes.of_value.fill(-1);
    for (std::int64_t c = 0; c < classes.classes; ++c) {
      const std::int64_t value = values.empty() ? c : values[static_cast<std::size_t>(c)];
      classes.of_value[static_cast<std::size_t>(value)] = static_cast<std::int16_t>(c);
    }
    if (ignore) classes.of_value[static_cast<std::size_t>(*ignore)] = no_class;
    return classes;
  }
};

}  // namespace

Section segmentation_folder_choice() {
  return Keys<SegmentationFolderOptions>(
             "segmentation_folder",
             "Images as image_folder reads them, and a mask for each: a gray or palette PNG file of the same name, "
             "whose pixels are class numbers. The network ends in an output for each class and pixel. Steps of "
             "`transform` and `augment` that move pixels also move those of masks, to the nearest pixel; pixels "
             "outside of the image get class 0 or, with `ignore`, no class.")
      .key("path", &SegmentationFolderOptions::path,
           "A folder with the folders `images` and `masks`, or a list of such folders; the other keys accept lists, "
           "too.")
      .key("images", &SegmentationFolderOptions::images, "The folder of the images, which may be in subfolders.")
      .key("masks", &SegmentationFolderOptions::masks, "The folder of the masks, with the same subfolders.")
      .key("values", &SegmentationFolderOptions::values,
           "The value of each class in the masks, class by class: [0, 255]; default: the number of the class.",
           between(0, 255))
      .key("ignore", &SegmentationFolderOptions::ignore,
           "The value of pixels without a class, which have no weight in loss and metrics.", between(0, 255));
}

}  // namespace trainctl
