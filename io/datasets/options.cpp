// The table of data sets, and how each finds its files.
#include "io/datasets/options.h"

#include <filesystem>

#include "core/base/files.h"
#include "core/base/format.h"
#include "io/datasets/idx.h"
#include "io/datasets/image_folder.h"
#include "io/datasets/npy.h"
#include "io/datasets/synthetic.h"

namespace trainctl {
namespace {

struct IdxOptions final : DatasetOptions {
  static Keys<IdxOptions> keys() {
    return Keys<IdxOptions>("idx", "Files in MNIST's IDX format, .gz too.")
        .key("path", &IdxOptions::path,
             "A folder with MNIST's file names: train-* are read for training, t10k-* for validation and test.")
        .key("images", &IdxOptions::images, "The file of samples; images of 28x28 are samples of 28x28x1.")
        .key("labels", &IdxOptions::labels, "The file of labels, from 0.");
  }
  std::shared_ptr<const Dataset> open(const DataLocation& where, PartKind part, const StatedFacts& known,
                                      std::uint64_t) const override {
    StatedFacts stated = known;
    stated.regression = false;  // a file of labels holds classes
    IdxFiles files{where.images.text, where.labels.text};
    if (!where.path.empty()) files = find_mnist_files(where.path.text, part == PartKind::training ? "train" : "t10k");
    if (files.images.empty() || files.labels.empty())
      throw Error(ErrorKind::config, "idx needs `path`, or `images` and `labels`");
    return idx_dataset(files.images, files.labels, stated);
  }
};

struct ImageFolderOptions final : DatasetOptions {
  static Keys<ImageFolderOptions> keys() {
    return Keys<ImageFolderOptions>("image_folder", "JPEG and PNG files in one folder for each class.")
        .key("path", &ImageFolderOptions::path,
             "The folder that holds the class folders; classes are in bytewise order of their names.");
  }
  std::shared_ptr<const Dataset> open(const DataLocation& where, PartKind, const StatedFacts& stated,
                                      std::uint64_t) const override {
    if (where.path.empty()) throw Error(ErrorKind::config, "image_folder needs `path`");
    return image_folder_dataset(where.path.text, stated);
  }
};

struct NpyOptions final : DatasetOptions {
  static Keys<NpyOptions> keys() {
    return Keys<NpyOptions>("npy",
                            "NumPy arrays: samples x [n, ...] and targets y, integers for classes or else values.")
        .key("path", &NpyOptions::path,
             "An .npz file with x and y, or x_train, y_train, x_test and y_test, or a folder with .npy files of these "
             "names.")
        .key("x", &NpyOptions::x, "The .npy file of samples.")
        .key("y", &NpyOptions::y, "The .npy file of targets.");
  }
  std::shared_ptr<const Dataset> open(const DataLocation& where, PartKind part, const StatedFacts& stated,
                                      std::uint64_t) const override {
    if (where.path.empty()) {
      if (where.x.empty() || where.y.empty()) throw Error(ErrorKind::config, "npy needs `path`, or `x` and `y`");
      return array_dataset(read_npy(where.x.text), read_npy(where.y.text), stated);
    }
    const std::string& path = where.path.text;
    const std::string ending = part == PartKind::training ? "_train" : "_test";
    if (is_folder(path)) {
      const std::string suffix = npy_in_folder(path, "x" + ending).empty() ? "" : ending;
      const auto read = [&](const std::string& name) {
        const std::string file = npy_in_folder(path, name + suffix);
        if (file.empty()) {
          data_error(path, format("has no file {}.npy", name + suffix),
                     "save samples as x.npy and targets as y.npy, or name the files with `x` and `y`");
        }
        return read_npy(file);
      };
      return array_dataset(read("x"), read("y"), stated);
    }
    const std::string suffix = has_npz_array(path, "x" + ending) ? ending : "";
    return array_dataset(read_npz(path, "x" + suffix), read_npz(path, "y" + suffix), stated);
  }
};

struct SyntheticOptions final : DatasetOptions {
  SyntheticOptions() { samples = 1024; }

  static Keys<SyntheticOptions> keys() {
    return Keys<SyntheticOptions>(
               "synthetic",
               "Made-up samples that can be learnt, a function of the seed; needs `shape` and `classes` (0: values).")
        .key("samples", &SyntheticOptions::samples, "Number of samples.", between(1, most_synthetic_samples));
  }
  std::shared_ptr<const Dataset> open(const DataLocation& where, PartKind part, const StatedFacts& stated,
                                      std::uint64_t seed) const override {
    if (!stated.sample || !(stated.training || stated.classes)) {
      throw Error(ErrorKind::config, "synthetic data needs `shape` and `classes`");
    }
    // Parts lie far from each other in the endless set.
    const std::int64_t first = static_cast<std::int64_t>(part) * most_synthetic_samples;
    return synthetic_dataset(*stated.sample, *stated.known_classes(), first, where.samples.value_or(*samples), seed);
  }
};

}  // namespace

const ChoiceTable& dataset_choices() {
  static const ChoiceTable table{"data set",
                                 {
                                     section_of<IdxOptions>(),
                                     section_of<ImageFolderOptions>(),
                                     section_of<NpyOptions>(),
                                     section_of<SyntheticOptions>(),
                                 }};
  return table;
}

}  // namespace trainctl
