// Samples that a trained network is asked about: arrays and images; tables have their own way.
#include <algorithm>
#include <iterator>

#include "core/base/files.h"
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
  if (path.ends_with(".npz")) return read_npz(path, has_npz_array(path, "x") ? "x" : "x_test");
  return is_idx(path) ? read_idx(path) : read_npy(path);
}

// An array that lies in a folder under its usual name; else the path itself.
std::string array_in(const std::string& path) {
  for (const char* name : {"x", "x_test"}) {
    const std::string array = is_folder(path) ? npy_in_folder(path, name) : "";
    if (!array.empty()) return array;
  }
  return path;
}

}  // namespace

std::shared_ptr<const Dataset> DatasetOptions::open_inputs(const std::vector<std::string>& paths,
                                                           const StatedFacts& stated) const {
  std::vector<std::string> found;
  std::transform(paths.begin(), paths.end(), std::back_inserter(found), array_in);
  const auto array = std::find_if(found.begin(), found.end(), is_array);
  if (array == found.end()) {
    if (stated.training == nullptr || stated.training->dtype == DType::uint8) return image_list(found, stated);
    data_error(found[0], "is no array, and the network was trained on arrays of numbers",
               "give an .npy file of samples like those of the training data");
  }
  if (found.size() > 1) {
    throw Error(ErrorKind::config, *array + " is an array, and these are read one at a time",
                "ask once for each of them");
  }
  return array_inputs(read_array(*array), stated);
}

}  // namespace trainctl
