// A data set of image files that have no class: the images of pairs, or those to which masks belong.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/datasets/dataset.h"

namespace trainctl {

// Image files, whose names are relative to a folder.
struct FileNames {
  std::string folder;
  std::vector<std::string> names = {};
  bool skip_unreadable = false;

  std::string path(std::int64_t index) const;
  // Returns a hash of the names and of the files' contents.
  std::string fingerprint() const;
};

// How the images are used.
enum class ImageUse { input, target };

// The images of the files, decoded to 1 or 3 channels. As inputs they are samples without targets. As targets, each
// sample is the target of the input with the same number (DatasetInfo::image_targets).
class FileImages final : public Dataset {
 public:
  // Throws Error{data} that names `place` if no file can be read, or if the first one cannot be read and
  // `files.skip_unreadable` is false.
  FileImages(FileNames files, const std::string& place, std::int64_t channels, ImageUse use = ImageUse::input,
             std::string warning = {});

  const DatasetInfo& info() const override { return info_; }
  std::int64_t size() const override { return std::ssize(files_.names); }
  bool in_memory() const override { return false; }
  std::int32_t label(std::int64_t) const override { return 0; }
  std::string name_of(std::int64_t index) const override { return files_.path(index); }
  void read(std::int64_t index, Sample& sample) const override;

 private:
  FileNames files_;
  DatasetInfo info_;
  std::int64_t channels_;
};

// The number of channels to which images are decoded: 1 if the config sets shapes of one channel, otherwise 3.
std::int64_t declared_channels(const DeclaredInfo& declared);

}  // namespace trainctl
