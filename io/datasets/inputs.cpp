// Samples that a trained network is asked about: arrays and images; tables have their own way.
#include <algorithm>
#include <filesystem>

#include "core/base/format.h"
#include "io/datasets/arrays/idx.h"
#include "io/datasets/arrays/npy.h"
#include "io/datasets/images/image_list.h"
#include "io/datasets/options.h"

namespace trainctl {
namespace {

bool ends_as(const std::string& path, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view ending) { return path.ends_with(ending); });
}

bool is_idx(const std::string& path) { return ends_as(path, {"-ubyte", "-ubyte.gz", ".idx", ".idx.gz"}); }
bool is_array(const std::string& path) { return is_idx(path) || ends_as(path, {".npy", ".npy.gz", ".npz"}); }

Array read_array(const std::string& path) {
  if (path.ends_with(".npz")) return read_npz(path, "x");
  return is_idx(path) ? read_idx(path) : read_npy(path);
}

}  // namespace

std::shared_ptr<const Dataset> DatasetOptions::open_inputs(const std::vector<std::string>& paths,
                                                           const StatedFacts& stated) const {
  if (std::none_of(paths.begin(), paths.end(), is_array)) return image_list(paths, stated);
  if (paths.size() > 1) {
    throw Error(ErrorKind::config, format("{} is an array, and arrays are read one at a time",
                                          *std::find_if(paths.begin(), paths.end(), is_array)));
  }
  return array_inputs(read_array(paths[0]), stated);
}

}  // namespace trainctl
