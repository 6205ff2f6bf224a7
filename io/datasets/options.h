// The `dataset` of a config: the location of its samples, their meaning for the network, and how to open them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/metrics/class_weights.h"
#include "core/spec/by_name.h"
#include "core/spec/one_or_more.h"
#include "core/spec/values.h"
#include "io/datasets/dataset.h"

namespace trainctl {

enum class SplitKind { training, validation, test };

// The offset between the training, validation and test samples of a synthetic data set.
inline constexpr std::int64_t most_synthetic_samples = std::int64_t{1} << 40;

// The location of samples in one piece. Each data set reads some of these keys.
struct DataLocation {
  Path path;
  Path images, labels;                  // idx
  ByName<Path> x, y;                    // npy
  Path weights;                         // npy
  Path masks;                           // segmentation_folder
  std::optional<std::int64_t> samples;  // synthetic
};

// The location of a split's samples as the config states it: each key names one file or folder, or several whose
// samples follow each other. `validation` and `test` have the same keys as the data set.
struct DataLocations {
  OneOrMore<Path> path;
  OneOrMore<Path> images, labels;
  ByName<OneOrMore<Path>> x, y;
  OneOrMore<Path> weights, masks;
  std::optional<std::int64_t> samples;

  // A location for each item of the lists, of which there is one at least; items with the same number belong together.
  std::vector<DataLocation> pieces() const;
  // Reports lists that differ in length at the place of the section.
  void check_lengths(const SourceLocation& location, Reader& reader) const;
};

// The statements about an input, and its name.
struct NamedInfo {
  std::string name;
  DeclaredInfo declared;
};

// The meaning of the data for the network, by its inputs and outputs; the name of a single one is empty.
struct DataUse {
  struct Input {
    std::string name;
    std::int64_t tokens = 0;  // as in ArrayUse
  };
  struct Target {
    std::string name;
    bool values = false, class_numbers = false;  // as target_values and class_numbers in ArrayUse
  };
  std::vector<Input> inputs = {Input{}};
  std::vector<Target> targets = {Target{}};
  std::optional<ClassWeights> class_weights;  // of the first target, in training

  // Whether the model has one input and one output, neither with a name.
  bool unnamed() const { return inputs[0].name.empty() && targets[0].name.empty(); }
};

// The statements about each of a group's data sets.
struct DeclaredGroup {
  std::vector<DeclaredInfo> inputs, targets;
  DataUse use;  // in the same order
};

struct DatasetOptions : Options, DataLocations {
  // Opens one piece of a split at its location `where`. `seed` is the run's seed. Throws Error{data}.
  virtual std::shared_ptr<const Dataset> open(const DataLocation& where, SplitKind split, const DeclaredInfo& declared,
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
  virtual DatasetGroup open_group(const DataLocation& where, SplitKind split, const DeclaredGroup& declared,
                                  std::uint64_t seed) const;
  // Opens a split in one or several pieces; by default each for itself, and then one after another (concatenated.h).
  // Throws Error{data} that names all pieces that cannot be opened.
  virtual DatasetGroup open_pieces(const std::vector<DataLocation>& pieces, SplitKind split,
                                   const DeclaredGroup& declared, std::uint64_t seed) const;
  // Opens samples without targets for a network that was trained on this data set, whose info are declared.training:
  // images and folders of them, or an array (.npy, .npz, IDX); of a table further tables. Throws Error{data}.
  virtual std::shared_ptr<const Dataset> open_inputs(const std::vector<std::string>& paths,
                                                     const DeclaredInfo& declared) const;
  // The same for each of a network's inputs. Of several, a path is NAME=PATH for each, or an only one is a folder or an
  // .npz file with an array for each: of its name or, in a folder, of the name of the file that the config states as
  // `x`. Throws Error{config} where an input has no path.
  std::vector<std::shared_ptr<const Dataset>> open_all_inputs(const std::vector<std::string>& paths,
                                                              const std::vector<NamedInfo>& inputs) const;
};

// The statements about a data set with one input and one target.
DeclaredInfo declared_of_both(const DeclaredGroup& declared);
// The paths of pieces, each of which has one. Throws Error{config} where there is none, as "csv needs `path`".
std::vector<std::string> paths_of(const std::vector<DataLocation>& pieces, const char* dataset);

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
