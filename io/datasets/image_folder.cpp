// The image folder: the list of files is read once, images when they are asked for.
#include "io/datasets/image_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/base/format.h"
#include "core/base/hash.h"
#include "io/datasets/image_codec.h"

namespace trainctl {
namespace {

namespace fs = std::filesystem;

bool is_image(const fs::path& path) {
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return std::tolower(c); });
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

// The folders of a folder, in bytewise order.
std::vector<std::string> folders_in(const std::string& path) {
  std::error_code error;
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory() && name[0] != '.') names.push_back(name);
  }
  if (error) {
    data_error(path, format("cannot be read: {}", error.message()),
               "configs of trainctl look for their data in the folder that TRAINCTL_DATA names (default: data)");
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The images below a class folder, relative to it, in bytewise order.
std::vector<std::string> images_in(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path, error)) {
    if (is_image(entry.path()) && entry.is_regular_file())
      names.push_back(entry.path().lexically_relative(path).string());
  }
  if (error) data_error(path, format("cannot be read: {}", error.message()));
  std::sort(names.begin(), names.end());
  return names;
}

void read_file(const std::string& path, std::vector<std::byte>& bytes) {
  struct File {
    int descriptor;
    ~File() {
      if (descriptor >= 0) close(descriptor);
    }
  } file{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat status {};
  if (file.descriptor < 0 || fstat(file.descriptor, &status) != 0)
    data_error(path, format("cannot be opened: {}", std::strerror(errno)));
  bytes.resize(static_cast<std::size_t>(status.st_size));
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::read(file.descriptor, bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) data_error(path, format("cannot be read: {}", std::strerror(errno)));
    if (got == 0) data_error(path, "became shorter while it was read");
    done += static_cast<std::size_t>(got);
  }
}

class ImageFolder final : public Dataset {
 public:
  ImageFolder(const std::string& path, const StatedFacts& stated) : path_(path) {
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
    Sample first;
    read(0, first);
    facts_.sample = first.shape;
    std::string all_names;
    for (const std::string& name : names_) all_names += name + '\n';
    facts_.fingerprint = format("{} images {:016x}", names_.size(), xxh3(all_names.data(), all_names.size()));
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
    read_file(path, sample.scratch);
    sample.shape = decode_image(sample.scratch.data(), static_cast<std::int64_t>(sample.scratch.size()), channels_,
                                path, sample.buffer);
    sample.dtype = DType::uint8;
    sample.values = sample.buffer.data();
  }

 private:
  // Classes are numbered as in the training part, which may have more of them.
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
    if (!may_be_missing || fs::exists(folder)) {
      std::vector<std::string> names = images_in(folder);
      if (names.empty())
        data_error(folder, "has no .jpg, .jpeg or .png files", "remove the folder, or put images into it");
      names_.insert(names_.end(), std::make_move_iterator(names.begin()), std::make_move_iterator(names.end()));
    }
    class_ends_.push_back(size());
  }

  std::string path_;
  DatasetFacts facts_;
  std::vector<std::string> names_;        // relative to the class folder, class by class
  std::vector<std::int64_t> class_ends_;  // class c has samples [class_ends_[c - 1], class_ends_[c])
  std::int64_t channels_ = 3;
};

}  // namespace

std::shared_ptr<const Dataset> image_folder_dataset(const std::string& path, const StatedFacts& stated) {
  return std::make_shared<ImageFolder>(path, stated);
}

}  // namespace trainctl
