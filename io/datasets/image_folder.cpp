// The data set of an image folder: the list of files is read once, each image on demand.
#include "io/datasets/image_folder.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/hash.h"
#include "io/datasets/fingerprint.h"
#include "io/datasets/image_files.h"
#include "io/datasets/options.h"

namespace trainctl {
namespace {

// The folders in a folder, links to folders included, in bytewise order.
std::vector<std::string> folders_in(const std::string& path) {
  std::vector<std::string> names;
  for (const FolderEntry& entry : list_folder(path, data_role)) {
    if (entry.name[0] == '.') continue;
    if (entry.type == FileType::link && file_type(path + "/" + entry.name) == FileType::absent) {
      data_error(path + "/" + entry.name, "is a symbolic link to something that does not exist", "mend or remove it");
    }
    if (entry.type == FileType::folder || (entry.type == FileType::link && is_folder(path + "/" + entry.name))) {
      names.push_back(entry.name);
    }
  }
  return names;
}

class ImageFolder final : public Dataset {
 public:
  ImageFolder(const std::string& path, const StatedFacts& stated)
      : path_(path), skip_unreadable_(stated.skip_unreadable) {
    facts_.class_names = folders_in(path);
    if (facts_.class_names.empty())
      data_error(path, "has no class folders", "put the images of each class into a folder of its own");
    if (stated.training) match_training_classes(*stated.training);
    facts_.classes = static_cast<std::int64_t>(facts_.class_names.size());
    if (stated.classes && *stated.classes != facts_.classes) {
      data_error(path, format("has {} class folders, the config states {} classes", facts_.classes, *stated.classes));
    }
    for (std::size_t c = 0; c < facts_.class_names.size(); ++c) add_class(c, stated.training != nullptr);
    if (stated.sample && stated.sample->rank() == 3 && stated.sample->back() == 1) channels_ = 1;
    facts_.sample = first_readable_shape(*this, path_, skip_unreadable_);
    std::string all_names;
    for (std::int64_t i = 0; i < size(); ++i) {
      all_names += format("{} {}\n", label(i), names_[static_cast<std::size_t>(i)]);
    }
    const auto path_of = [this](std::int64_t i) { return name_of(i); };
    facts_.fingerprint = format("{} images {:016x} {:016x}", size(), xxh3(all_names.data(), all_names.size()),
                                content_hash(FileContents{size(), path_of, skip_unreadable_}));
    const std::string others = text_of_others(others_);
    if (!others.empty()) facts_.warning = format("{}: {}; only JPEG and PNG are", path_, others);
  }

  const DatasetFacts& facts() const override { return facts_; }
  std::int64_t size() const override { return static_cast<std::int64_t>(names_.size()); }
  bool in_memory() const override { return false; }
  std::int32_t label(std::int64_t index) const override {
    return static_cast<std::int32_t>(std::upper_bound(class_ends_.begin(), class_ends_.end(), index) -
                                     class_ends_.begin());
  }
  std::string name_of(std::int64_t index) const override {
    return path_ + "/" + facts_.class_names[static_cast<std::size_t>(label(index))] + "/" +
           names_[static_cast<std::size_t>(index)];
  }

  void read(std::int64_t index, Sample& sample) const override {
    read_image_file(name_of(index), channels_, skip_unreadable_, sample);
  }

 private:
  // Numbers the classes as in the training part, which may have more classes.
  void match_training_classes(const DatasetFacts& training) {
    for (const std::string& name : facts_.class_names) {
      const auto& known = training.class_names;
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        data_error(path_, format("has a class '{}' that the training part lacks", name));
      }
    }
    facts_.class_names = training.class_names;
  }

  void add_class(std::size_t number, bool may_be_missing) {
    const std::string folder = path_ + "/" + facts_.class_names[number];
    if (!may_be_missing || exists(folder)) {
      ImageListing listing = list_images(folder);
      if (listing.images.empty()) {
        const std::string others = text_of_others(listing.others);
        data_error(folder,
                   others.empty() ? "has no .jpg, .jpeg or .png files"
                                  : "has " + others + ", and no .jpg, .jpeg or .png files",
                   others.empty() ? "remove the folder, or put images into it" : "convert them to JPEG or PNG");
      }
      names_.insert(names_.end(), std::make_move_iterator(listing.images.begin()),
                    std::make_move_iterator(listing.images.end()));
      for (const auto& [ending, files] : listing.others) others_[ending] += files;
    }
    class_ends_.push_back(size());
  }

  std::string path_;
  DatasetFacts facts_;
  std::vector<std::string> names_;        // paths relative to the class folder, class by class
  std::vector<std::int64_t> class_ends_;  // class c has the samples [class_ends_[c - 1], class_ends_[c])
  std::int64_t channels_ = 3;
  bool skip_unreadable_ = false;
  std::map<std::string, std::int64_t> others_;  // as in ImageListing
};

struct ImageFolderOptions final : DatasetOptions {
  std::shared_ptr<const Dataset> open(const DataLocation& where, PartKind, const StatedFacts& stated,
                                      std::uint64_t) const override {
    if (where.path.empty()) throw Error(ErrorKind::config, "image_folder needs `path`");
    return image_folder_dataset(where.path.text, stated);
  }
  bool holds_image_files() const override { return true; }
};

}  // namespace

std::shared_ptr<const Dataset> image_folder_dataset(const std::string& path, const StatedFacts& stated) {
  return std::make_shared<ImageFolder>(path, stated);
}

Section image_folder_choice() {
  return Keys<ImageFolderOptions>("image_folder", "JPEG and PNG files in one folder for each class.")
      .key("path", &ImageFolderOptions::path,
           "The folder that holds the class folders; classes are in bytewise order of their names.");
}

}  // namespace trainctl
