// Opens arrays and images for prediction. Tables are opened by csv_dataset().
#include "io/datasets/inputs.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>

#include "core/base/file_names.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/table.h"
#include "io/datasets/arrays/idx.h"
#include "io/datasets/arrays/npy.h"
#include "io/datasets/images/image_files.h"
#include "io/datasets/options.h"

namespace trainctl {
namespace {

bool is_idx(const std::string& path) { return has_ending(path, {"-ubyte", "-ubyte.gz", ".idx", ".idx.gz"}); }
bool is_array(const std::string& path) { return is_idx(path) || has_ending(path, {".npy", ".npy.gz", ".npz"}); }

Array read_array(const std::string& path) {
  if (has_ending(path, {".npz"})) return read_npz(path, has_npz_array(path, "x") ? "x" : "x_test");
  return is_idx(path) ? read_idx(path) : read_npy(path);
}

// The path of the array x or x_test in a folder; the path itself if there is none.
std::string array_in(const std::string& path) {
  for (const char* name : {"x", "x_test"}) {
    const std::string array = is_folder(path) ? npy_in_folder(path, name) : "";
    if (!array.empty()) return array;
  }
  return path;
}

// Returns text such as "28x28x1 numbers" or "7 tokens, whole numbers below 20".
std::string expected_text(const DeclaredInfo& declared) {
  const std::string shape = to_string(declared.training->sample);
  const std::int64_t tokens = declared.use.tokens;
  return tokens > 0 ? format("{} tokens, whole numbers below {}", shape, tokens) : format("{} numbers", shape);
}

// Throws the error for paths without an array if the network was not trained on images.
[[noreturn]] void refuse_images(const std::string& path, const DeclaredInfo& declared) {
  if (!exists(path)) data_error(path, "does not exist");
  data_error(
      path, "is not an array, and the network was trained on arrays of numbers",
      format("give an .npy file whose samples are {} each, like those of the training data", expected_text(declared)));
}

void check_tokens(const Array& array, const DeclaredInfo& declared) {
  if (declared.use.tokens == 0 || is_integer(array.type)) return;
  data_error(array.path, "holds values, but the network reads tokens",
             format("store them as whole numbers below {}: x.astype(numpy.int32)", declared.use.tokens));
}

// A data set of images without targets (DatasetInfo::target [0]). The files are in the order of the list; the files of
// a folder and its subfolders are in bytewise order. Images are decoded to the number of channels of the training
// split's samples. Throws Error{data} if a path is missing or a folder has no images.
class ImageList final : public Dataset {
 public:
  ImageList(const std::vector<std::string>& paths, const DeclaredInfo& declared) : skips_(declared.skip_unreadable) {
    with_all_errors(paths, [&](const std::string& path) { add(path); });
    const Shape sample = declared.training ? declared.training->sample : declared.sample.value_or(Shape{0, 0, 3});
    if (sample.rank() == 3 && sample.back() == 1) channels_ = 1;
    info_.sample = first_readable_shape(*this, paths[0], skips_);
    info_.target = {0};
  }

  const DatasetInfo& info() const override { return info_; }
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
  DatasetInfo info_;
  std::int64_t channels_ = 3;
  bool skips_ = false;
};

// Finds the arrays of a network with several inputs in the paths that the user gives.
class InputArrays {
 public:
  // `files` is the config's `x`.
  InputArrays(const std::vector<std::string>& paths, const std::vector<NamedInfo>& inputs,
              const ByName<OneOrMore<Path>>& files)
      : paths_(paths), inputs_(inputs), files_(files) {
    for (const std::string& path : paths) {
      const std::string name = path.substr(0, path.find('='));
      const bool known = std::any_of(inputs.begin(), inputs.end(), [&](const NamedInfo& i) { return i.name == name; });
      if (known && name.size() < path.size()) named_[name] = path.substr(name.size() + 1);
    }
    if (paths.size() != (named_.empty() ? 1 : named_.size())) refuse("the paths do not name each of them once");
  }

  Array read(const std::string& input) const {
    if (!named_.empty()) {
      const auto found = named_.find(input);
      if (found == named_.end()) refuse(format("no path is given for '{}'", input));
      if (!is_array(found->second)) refuse(format("{} is not an array", found->second));
      return read_array(found->second);
    }
    if (is_folder(paths_[0])) return read_npy(file_in_folder(input));
    if (!has_ending(paths_[0], {".npz"})) refuse(format("{} does not hold an array for each", paths_[0]));
    return read_npz(paths_[0], input);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    std::string names, example;
    for (const NamedInfo& input : inputs_) {
      names += (names.empty() ? "" : ", ") + input.name;
      example += format(" {}=FILE.npy", input.name);
    }
    throw Error(ErrorKind::config, format("the network has the inputs {}, and {}", names, what),
                format("give an array for each,{}, or one folder or .npz file that holds them all", example));
  }

  // The file with the input's name or, if there is none, with the name of the file that the config gives for the input.
  std::string file_in_folder(const std::string& input) const {
    std::string file = npy_in_folder(paths_[0], input);
    const auto* declared = files_.find(input);
    if (file.empty() && declared && !declared->items.empty()) {
      file = npy_in_folder(paths_[0], std::filesystem::path(declared->items[0].text).stem().string());
    }
    if (file.empty()) refuse(format("{} has no {}.npy", paths_[0], input));
    return file;
  }

  const std::vector<std::string>& paths_;
  const std::vector<NamedInfo>& inputs_;
  const ByName<OneOrMore<Path>>& files_;
  std::map<std::string, std::string> named_;  // key: the input; value: its path, from "NAME=PATH"
};

}  // namespace

bool holds_input_array(const std::string& path) { return is_array(array_in(path)); }

std::shared_ptr<const Dataset> DatasetOptions::open_inputs(const std::vector<std::string>& paths,
                                                           const DeclaredInfo& declared) const {
  std::vector<std::string> found;
  std::transform(paths.begin(), paths.end(), std::back_inserter(found), array_in);
  const auto array = std::find_if(found.begin(), found.end(), is_array);
  if (array == found.end()) {
    const DatasetInfo* training = declared.training;
    const bool reads_images = !training || (training->dtype == DType::uint8 && training->sample.rank() == 3);
    if (reads_images) return std::make_shared<ImageList>(found, declared);
    refuse_images(found[0], declared);
  }
  if (found.size() > 1) {
    throw Error(ErrorKind::config, *array + " is an array, and only one array can be read at a time",
                "give one array at a time");
  }
  Array read = read_array(*array);
  check_tokens(read, declared);
  return array_inputs(std::move(read), declared);
}

std::vector<std::shared_ptr<const Dataset>> DatasetOptions::open_all_inputs(
    const std::vector<std::string>& paths, const std::vector<NamedInfo>& inputs) const {
  if (inputs.size() == 1) return {open_inputs(paths, inputs[0].declared)};
  const InputArrays arrays(paths, inputs, x);
  std::vector<std::shared_ptr<const Dataset>> datasets;
  for (const NamedInfo& input : inputs) {
    Array array = arrays.read(input.name);
    check_tokens(array, input.declared);
    datasets.push_back(array_inputs(std::move(array), input.declared));
    if (datasets.back()->size() == datasets[0]->size()) continue;
    data_error(datasets.back()->name_of(0),
               format("is one of {}, and {} is one of {}", counted(datasets.back()->size(), "sample"),
                      datasets[0]->name_of(0), grouped(datasets[0]->size())),
               "each input needs a row for every sample");
  }
  return datasets;
}

}  // namespace trainctl
