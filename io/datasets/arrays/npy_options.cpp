// The data set of NumPy arrays: its keys, and how its splits are opened.
#include <optional>
#include <utility>

#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/table.h"
#include "io/datasets/arrays/npy.h"
#include "io/datasets/options.h"
#include "io/datasets/windows.h"

namespace trainctl {
namespace {

struct NpyOptions final : DatasetOptions {
  std::shared_ptr<const Dataset> open(const DataLocation& where, SplitKind split, const DeclaredInfo& declared,
                                      std::uint64_t) const override {
    const std::string ending = ending_of(where, "x", split);
    Array x = read(where, where.x, "x", "", ending);
    if (declared.targets_may_miss() && !has_targets(where, ending)) {
      return array_inputs(std::move(x), declared, read_weights(where));
    }
    Array y = read(where, where.y, "y", "", ending);
    return array_dataset(std::move(x), std::move(y), declared, {}, read_weights(where));
  }

  bool holds_several() const override { return true; }
  std::vector<std::string> files_of(const DataLocation& where) const override {
    return where.path.empty() ? DatasetOptions::files_of(where) : std::vector<std::string>();
  }

  DatasetGroup open_pieces(const std::vector<DataLocation>& pieces, SplitKind split, const DeclaredGroup& declared,
                           std::uint64_t seed) const override {
    if (!windows) return DatasetOptions::open_pieces(pieces, split, declared, seed);
    require_one_series(windows, pieces.size());
    DeclaredGroup rows = declared;
    for (DeclaredInfo& input : rows.inputs) input.sample.reset();  // the shape of windows
    const DatasetGroup group = open_group(pieces[0], split, rows, seed);
    return windows_of(group, *windows, !declared.targets[0].targets_may_miss(),
                      pieces[0].path.empty() ? group.inputs[0]->name_of(0) : pieces[0].path.text);
  }

  std::vector<std::shared_ptr<const Dataset>> open_all_inputs(const std::vector<std::string>& paths,
                                                              const std::vector<NamedInfo>& inputs) const override {
    if (!windows) return DatasetOptions::open_all_inputs(paths, inputs);
    std::vector<NamedInfo> rows = inputs;
    for (NamedInfo& input : rows) input.declared.sample.reset();
    const DatasetGroup group{DatasetOptions::open_all_inputs(paths, rows), {}};
    return windows_of(group, *windows, false, paths[0]).inputs;
  }

  std::optional<WindowOptions> windows;

  DatasetGroup open_group(const DataLocation& where, SplitKind split, const DeclaredGroup& declared,
                          std::uint64_t seed) const override {
    if (declared.use.unnamed()) return DatasetOptions::open_group(where, split, declared, seed);
    DatasetGroup group;
    const std::string& first = declared.use.inputs[0].name;
    const std::string ending = ending_of(where, first.empty() ? "x" : first, split);
    std::optional<Array> weights = read_weights(where);
    for (std::size_t i = 0; i < declared.inputs.size(); ++i) {
      Array x = read(where, where.x, "x", declared.use.inputs[i].name, ending);
      group.inputs.push_back(array_inputs(std::move(x), declared.inputs[i]));
    }
    for (std::size_t i = 0; i < declared.targets.size(); ++i) {
      if (declared.targets[i].target_unused) {
        group.targets.push_back(group.inputs[0]);
        continue;
      }
      Array y = read(where, where.y, "y", declared.use.targets[i].name, ending);
      group.targets.push_back(array_targets(std::move(y), declared.targets[i], std::exchange(weights, {})));
    }
    for (const auto* list : {&group.inputs, &group.targets}) {
      for (const auto& dataset : *list) {
        if (dataset->size() == group.size()) continue;
        data_error(dataset->name_of(0),
                   format("is one of {}, and {} is one of {}", counted(dataset->size(), "sample"),
                          group.inputs[0]->name_of(0), grouped(group.size())),
                   "each input and target needs a row for every sample");
      }
    }
    return group;
  }

 private:
  static std::optional<Array> read_weights(const DataLocation& where) {
    if (where.weights.empty()) return std::nullopt;
    return read_npy(where.weights.text);
  }

  static bool has_targets(const DataLocation& where, const std::string& ending) {
    if (where.path.empty()) return where.y.find("") != nullptr && !where.y.find("")->empty();
    const std::string &path = where.path.text, array = "y" + ending;
    return is_folder(path) ? !npy_in_folder(path, array).empty() : has_npz_array(path, array);
  }

  // The ending of all array names at a path: "_train" or "_test" if the first input has an array with this ending,
  // otherwise "".
  static std::string ending_of(const DataLocation& where, const std::string& first, SplitKind split) {
    if (where.path.empty()) return "";
    const std::string ending = split == SplitKind::training ? "_train" : "_test", &path = where.path.text;
    const bool found =
        is_folder(path) ? !npy_in_folder(path, first + ending).empty() : has_npz_array(path, first + ending);
    return found ? ending : "";
  }

  // Reads the array of an input or target: the file in `files` or, at the path, the array of its name with the ending.
  // If the model has no name for it, the name is `key` (x or y).
  static Array read(const DataLocation& where, const ByName<Path>& files, const std::string& key,
                    const std::string& name, const std::string& ending) {
    if (where.path.empty()) {
      const Path* file = files.find(name);
      if (!file || file->empty()) throw Error(ErrorKind::config, "npy needs `path`, or `x` and `y`");
      return read_npy(file->text);
    }
    const std::string& path = where.path.text;
    const std::string array = (name.empty() ? key : name) + ending;
    if (!is_folder(path)) return read_npz(path, array);
    const std::string file = npy_in_folder(path, array);
    if (file.empty()) {
      data_error(path, format("has no file {}.npy", array),
                 name.empty() ? "save samples as x.npy and targets as y.npy, or name the files with `x` and `y`"
                              : "save each input and target as NAME.npy, or name the files with `x` and `y`");
    }
    return read_npy(file);
  }
};

}  // namespace

Section npy_choice() {
  return Keys<NpyOptions>(
             "npy", "NumPy arrays: samples x [n, ...] and targets y; integers are classes, other targets are values.")
      .key("path", &NpyOptions::path,
           "An .npz file with x and y, or x_train, y_train, x_test and y_test, or a folder with .npy files of these "
           "names; for a model with named inputs and outputs, their names are used instead of x and y. All keys accept "
           "lists: files at the same position belong together, and samples are concatenated.")
      .key("x", &NpyOptions::x, "The .npy file of samples; for several inputs, one file for each by name.")
      .key("y", &NpyOptions::y, "The .npy file of targets; for several outputs, one file for each by name.")
      .key("windows", &NpyOptions::windows,
           "For a series x [times, values] and targets y [times, ...]: samples are windows of several rows of x, each "
           "with the target and weight of a row after it. `split` splits the last rows off for validation.")
      .key("weights", &NpyOptions::weights,
           "An .npy file of weights, one for each sample or for each of its positions, by which loss and metrics are "
           "averaged; 0 leaves a sample out. Absent: all weights are 1.");
}

}  // namespace trainctl
