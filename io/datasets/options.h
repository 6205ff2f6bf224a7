// The `dataset` of a config: the location of its samples, and how to open them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/spec/by_name.h"
#include "core/spec/values.h"
#include "io/datasets/dataset.h"

namespace trainctl {

enum class PartKind { training, validation, test };

// The offset between the training, validation and test samples of a synthetic data set.
inline constexpr std::int64_t most_synthetic_samples = std::int64_t{1} << 40;

// The location of a part's samples. Each data set reads some of these keys; `validation` and `test` have the same keys
// as the data set.
struct DataLocation {
  Path path;
  Path images, labels;                  // idx
  ByName<Path> x, y;                    // npy
  Path weights;                         // npy
  Path masks;                           // segmentation_folder
  std::optional<std::int64_t> samples;  // synthetic
};

struct DatasetOptions : Options, DataLocation {
  // Opens a part at its location `where`. `seed` is the run's seed. Throws Error{data}.
  virtual std::shared_ptr<const Dataset> open(const DataLocation& where, PartKind part, const StatedFacts& stated,
                                              std::uint64_t seed) const = 0;
  // Whether open_group() supports models with several inputs or outputs.
  virtual bool holds_several() const { return false; }
  // Whether targets are masks of the images, a class for each pixel, and whether pixels then have weights.
  virtual bool holds_masks() const { return false; }
  virtual bool weighs_pixels() const { return false; }
  // Whether samples are image files, which cost time to decode.
  virtual bool holds_image_files() const { return false; }
  // Opens the data sets for all inputs and outputs of a model; by default one data set for one input and one output.
  // Throws Error{data}.
  virtual DatasetGroup open_group(const DataLocation& where, PartKind part, const StatedGroup& stated,
                                  std::uint64_t seed) const;
};

// The choices of data sets, each in a file with its options.
Section idx_choice();
Section image_folder_choice();
Section segmentation_folder_choice();
Section npy_choice();
Section csv_choice();
Section cifar10_choice();
Section tfrecord_choice();
Section webdataset_choice();
Section synthetic_choice();
const ChoiceTable& dataset_choices();

}  // namespace trainctl
