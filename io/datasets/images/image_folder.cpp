// The data set of an image folder. It lists the files once and reads each image on demand.
#include "io/datasets/images/image_folder.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/hash.h"
#include "core/base/table.h"
#include "io/datasets/class_folders.h"
#include "io/datasets/fingerprint.h"
#include "io/datasets/images/image_files.h"
#include "io/datasets/options.h"
#include "io/datasets/utf8_names.h"

namespace trainctl {
namespace {

class ImageFolder final : public Dataset {
 public:
  ImageFolder(const std::vector<std::string>& paths, const DeclaredInfo& declared)
      : skip_unreadable_(declared.skip_unreadable) {
    std::set<std::string> names;
    bool classless = declared.training && declared.training->class_names.empty();
    with_all_errors(paths, [&](const std::string& path) {
      const std::vector<std::string> found = class_folders(path);
      if (found.empty() && !declared.targets_may_miss()) {
        data_error(path, "has no class folders", "put the images of each class into their own folder");
      }
      classless = classless || found.empty();
      if (declared.training && !classless) check_training_classes(path, found, *declared.training);
      names.insert(found.begin(), found.end());
    });
    if (!classless) info_.class_names = {names.begin(), names.end()};
    if (declared.training) info_.class_names = declared.training->class_names;
    info_.classes = std::ssize(info_.class_names);
    if (declared.classes && *declared.classes != info_.classes && !declared.targets_may_miss()) {
      data_error(paths[0], format("has {} class folders, but the config sets {}", info_.classes,
                                  counted(*declared.classes, "class")));
    }
    with_all_errors(info_.class_names, [&](const std::string& name) {
      for (const std::string& path : paths) add_folder(path + "/" + name, true);
      class_ends_.push_back(size());
    });
    if (info_.classes == 0) {
      with_all_errors(paths, [&](const std::string& path) { add_folder(path, false); });
    }
    if (declared.sample && declared.sample->rank() == 3 && declared.sample->back() == 1) channels_ = 1;
    info_.sample = first_readable_shape(*this, paths[0], skip_unreadable_);
    std::string all_names;
    for (std::int64_t i = 0; i < size(); ++i) {
      all_names += format("{} {}\n", label(i), names_[static_cast<std::size_t>(i)]);
    }
    const auto path_of = [this](std::int64_t i) { return name_of(i); };
    info_.fingerprint = format("{} images {:016x} {:016x}", size(), xxh3(all_names.data(), all_names.size()),
                               content_hash(FileContents{size(), path_of, skip_unreadable_}));
    const std::string left_out = left_out_.text_of_left_out();
    if (!left_out.empty()) info_.warning = format("{}: {}", paths[0], left_out);
  }

  const DatasetInfo& info() const override { return info_; }
  std::int64_t size() const override { return std::ssize(names_); }
  bool in_memory() const override { return false; }
  std::int32_t label(std::int64_t index) const override {
    if (info_.classes == 0) return 0;
    return static_cast<std::int32_t>(std::upper_bound(class_ends_.begin(), class_ends_.end(), index) -
                                     class_ends_.begin());
  }
  std::string name_of(std::int64_t index) const override {
    const auto folder = std::upper_bound(folders_.begin(), folders_.end(), index,
                                         [](std::int64_t i, const Folder& f) { return i < f.end; });
    return folder->path + "/" + names_[static_cast<std::size_t>(index)];
  }

  void read(std::int64_t index, Sample& sample) const override {
    read_image_file(name_of(index), channels_, skip_unreadable_, sample);
  }

 private:
  // A folder of one class in one of the paths; its last sample has number end - 1.
  struct Folder {
    std::string path;
    std::int64_t end;
  };

  // Throws Error{data} if `classes` has a class that is missing in the training split. The training split may have more
  // classes.
  static void check_training_classes(const std::string& path, const std::vector<std::string>& classes,
                                     const DatasetInfo& training) {
    for (const std::string& name : classes) {
      const auto& known = training.class_names;
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        data_error(path, format("has the class '{}', which is missing in the training split", name));
      }
    }
  }

  void add_folder(const std::string& folder, bool may_be_missing) {
    if (may_be_missing && !exists(folder)) return;
    ImageListing listing = list_images(folder);
    if (listing.images.empty()) refuse_no_images(folder, listing);
    left_out_.add_counts(listing);
    names_.insert(names_.end(), std::make_move_iterator(listing.images.begin()),
                  std::make_move_iterator(listing.images.end()));
    folders_.push_back({folder, size()});
  }

  DatasetInfo info_;
  std::vector<std::string> names_;        // paths relative to the folder, folder by folder
  std::vector<Folder> folders_;           // class by class
  std::vector<std::int64_t> class_ends_;  // class c has the samples [class_ends_[c - 1], class_ends_[c])
  std::int64_t channels_ = 3;
  bool skip_unreadable_ = false;
  ImageListing left_out_;  // only its counts are used
};

struct ImageFolderOptions final : DatasetOptions {
  std::shared_ptr<const Dataset> open(const DataLocation& where, SplitKind, const DeclaredInfo& declared,
                                      std::uint64_t) const override {
    return image_folder_dataset(paths_of({where}, "image_folder"), declared);
  }
  DatasetGroup open_pieces(const std::vector<DataLocation>& pieces, SplitKind, const DeclaredGroup& declared,
                           std::uint64_t) const override {
    const auto dataset = image_folder_dataset(paths_of(pieces, "image_folder"), declared_of_both(declared));
    return {{dataset}, {dataset}};
  }
  bool holds_image_files() const override { return true; }
};

}  // namespace

std::shared_ptr<const Dataset> image_folder_dataset(const std::vector<std::string>& paths,
                                                    const DeclaredInfo& declared) {
  return std::make_shared<ImageFolder>(paths, declared);
}

Section image_folder_choice() {
  return Keys<ImageFolderOptions>(
             "image_folder",
             "JPEG, PNG, WebP, GIF and BMP files in one folder for each class. Their values are those of Keras' "
             "loader: 8 bits for each channel (the upper 8 of 16 bits), without gamma, colour profiles and EXIF's "
             "orientation (an image that a camera marked as rotated is read as it is stored); transparent pixels show "
             "the colour beneath; of an animation the first frame is read. Colours are converted to gray as 0.299 red "
             "+ 0.587 green + 0.114 blue in all formats, as JPEG stores it. A file without an ending is read if its "
             "first bytes are those of such an image; hidden files and those of file managers (.DS_Store, ._*, "
             "Thumbs.db) are skipped.")
      .key("path", &ImageFolderOptions::path,
           "The folder that holds the class folders, or several, in which folders of the same name are one class; "
           "classes are in bytewise order of their names. With `label_mode: input` it may hold images without class "
           "folders.");
}

}  // namespace trainctl
