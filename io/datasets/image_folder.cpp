// The data set of an image folder: the list of files is read once, each image on demand.
#include "io/datasets/image_folder.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iterator>
#include <map>
#include <string_view>

#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/hash.h"
#include "io/datasets/fingerprint.h"
#include "io/datasets/image_codec.h"
#include "io/datasets/options.h"

namespace trainctl {
namespace {

// The ending of a file name in lower case: ".jpg" for "cat.JPG".
std::string ending_of(const std::string& name) {
  std::string ending = std::filesystem::path(name).extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return std::tolower(c); });
  return ending;
}

bool is_image(const std::string& ending) { return ending == ".jpg" || ending == ".jpeg" || ending == ".png"; }

// Whether the ending is that of an image format that is not read.
bool is_other_image(const std::string& ending) {
  constexpr std::string_view endings[] = {".tif", ".tiff", ".gif", ".bmp", ".webp", ".avif", ".heic", ".jp2", ".jxl"};
  return std::find(std::begin(endings), std::end(endings), ending) != std::end(endings);
}

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

// The images below a class folder by their paths relative to it; links to folders are not followed.
struct Listing {
  std::vector<std::string> images;
  std::map<std::string, std::int64_t> others;  // images of other formats: number of files by ending
};

void list_images(const std::string& folder, const std::string& below, Listing& listing) {
  for (const FolderEntry& entry : list_folder(folder)) {
    const std::string name = below + entry.name, ending = ending_of(entry.name);
    if (entry.type == FileType::folder) {
      list_images(folder + "/" + entry.name, name + "/", listing);
    } else if (is_image(ending)) {
      listing.images.push_back(name);
    } else if (is_other_image(ending)) {
      ++listing.others[ending];
    }
  }
}

// "12 files of endings that are not read (.tif, .webp)", or an empty text.
std::string text_of(const std::map<std::string, std::int64_t>& others) {
  std::int64_t count = 0;
  std::string endings;
  for (const auto& [ending, files] : others) {
    count += files;
    endings += (endings.empty() ? "" : ", ") + ending;
  }
  return count == 0 ? "" : format("{} images of formats that are not read ({})", count, endings);
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
    const std::string others = text_of(others_);
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
    const std::string path = name_of(index);
    try {
      const InputFile file(path);
      if (file.size() > largest_image_file) data_error(path, format("has {} bytes, which is not read", file.size()));
      sample.scratch.resize(static_cast<std::size_t>(file.size()));
      file.read(0, sample.scratch.data(), file.size());
      sample.shape = decode_image(sample.scratch.data(), file.size(), channels_, path, sample.buffer);
    } catch (const Error& error) {
      if (skip_unreadable_ || error.kind() != ErrorKind::data) throw;
      throw Error(ErrorKind::data, error.what(), "mend or remove it, or set `on_error: skip`");
    }
    sample.dtype = DType::uint8;
    sample.values = sample.buffer.data();
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
      Listing listing;
      list_images(folder, "", listing);
      if (listing.images.empty()) {
        const std::string others = text_of(listing.others);
        data_error(folder,
                   others.empty() ? "has no .jpg, .jpeg or .png files"
                                  : "has " + others + ", and no .jpg, .jpeg or .png files",
                   others.empty() ? "remove the folder, or put images into it" : "convert them to JPEG or PNG");
      }
      std::sort(listing.images.begin(), listing.images.end());
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
  std::map<std::string, std::int64_t> others_;  // as in Listing
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
