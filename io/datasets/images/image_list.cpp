// Listing images, and reading one.
#include "io/datasets/images/image_list.h"

#include <algorithm>

#include "core/base/files.h"
#include "core/base/format.h"
#include "io/datasets/images/image_files.h"

namespace trainctl {
namespace {

class ImageList final : public Dataset {
 public:
  ImageList(const std::vector<std::string>& paths, const StatedFacts& stated) : skips_(stated.skip_unreadable) {
    with_all_errors(paths, [&](const std::string& path) { add(path); });
    const Shape sample = stated.training ? stated.training->sample : stated.sample.value_or(Shape{0, 0, 3});
    if (sample.rank() == 3 && sample.back() == 1) channels_ = 1;
    facts_.sample = first_readable_shape(*this, paths[0], skips_);
    facts_.target = {0};
  }

  const DatasetFacts& facts() const override { return facts_; }
  std::int64_t size() const override { return std::ssize(files_); }
  bool holds_files() const override { return true; }
  bool in_memory() const override { return false; }
  std::int32_t label(std::int64_t) const override { return 0; }
  std::string name_of(std::int64_t index) const override { return files_[static_cast<std::size_t>(index)]; }
  void read(std::int64_t index, Sample& sample) const override {
    read_image_file(name_of(index), channels_, skips_, sample);
  }

 private:
  void add(const std::string& path) {
    if (!exists(path)) data_error(path, "does not exist");
    if (!is_folder(path)) {
      files_.push_back(path);
      return;
    }
    const ImageListing listing = list_images(path);
    if (listing.images.empty()) refuse_no_images(path, listing);
    for (const std::string& image : listing.images) files_.push_back(path + "/" + image);
  }

  std::vector<std::string> files_;
  DatasetFacts facts_;
  std::int64_t channels_ = 3;
  bool skips_ = false;
};

}  // namespace

std::shared_ptr<const Dataset> image_list(const std::vector<std::string>& paths, const StatedFacts& stated) {
  return std::make_shared<ImageList>(paths, stated);
}

}  // namespace trainctl
