// Reads image files that have no class.
#include "io/datasets/images/file_images.h"

#include <filesystem>

#include "core/base/format.h"
#include "core/base/hash.h"
#include "io/datasets/fingerprint.h"
#include "io/datasets/images/image_files.h"

namespace trainctl {

std::string FileNames::path(std::int64_t index) const {
  return (std::filesystem::path(folder) / names[static_cast<std::size_t>(index)]).string();
}

std::string FileNames::fingerprint() const {
  std::string all;
  for (const std::string& name : names) all += name + "\n";
  const auto path_of = [this](std::int64_t i) { return path(i); };
  return format("{} files {:016x} {:016x}", names.size(), xxh3(all.data(), all.size()),
                content_hash(FileContents{std::ssize(names), path_of, skip_unreadable}));
}

FileImages::FileImages(FileNames files, const std::string& place, std::int64_t channels, ImageUse use,
                       std::string warning)
    : files_(std::move(files)), channels_(channels) {
  info_.sample = first_readable_shape(*this, place, files_.skip_unreadable);
  info_.image_targets = use == ImageUse::target;
  info_.target = info_.image_targets ? info_.sample : Shape{0};
  info_.fingerprint = files_.fingerprint();
  info_.warning = std::move(warning);
}

void FileImages::read(std::int64_t index, Sample& sample) const {
  read_image_file(name_of(index), channels_, files_.skip_unreadable, sample);
}

std::int64_t declared_channels(const DeclaredInfo& declared) {
  return declared.sample && declared.sample->rank() == 3 && declared.sample->back() == 1 ? 1 : 3;
}

}  // namespace trainctl
