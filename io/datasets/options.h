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
inline constexpr std::int64_t max_synthetic_samples = std::int64_t{1} << 40;

struct Preparation;

// The location of one piece of a split's samples. Each kind of data set reads some of these keys.
struct DataLocation {
  Path path;
  Path images, labels;                  // idx
  ByName<Path> x, y;                    // npy
  Path weights;                         // npy
  Path masks;                           // segmentation_folder
  Path target_images;                   // image_pairs
  std::optional<std::int64_t> samples;  // synthetic
};

// The location of a split's samples in the config: each key names one file or folder, or a list of them, whose samples
// are concatenated. `validation` and `test` have the same keys as the data set.
struct DataLocations {
  OneOrMore<Path> path;
  OneOrMore<Path> images, labels;
  ByName<OneOrMore<Path>> x, y;
  OneOrMore<Path> weights, masks, target_images;
  std::optional<std::int64_t> samples;

  // One location for each item of the lists, at least one; the items at the same position of all lists belong together.
  std::vector<DataLocation> pieces() const;
  // Whether all files and folders exist on this host.
  bool exist() const;
  // Reports lists that differ in length, at the section's location.
  void check_lengths(const SourceLocation& location, Reader& reader) const;
};

// The name of an input, and the info about its data in the config.
struct NamedInfo {
  std::string name;
  DeclaredInfo declared;
};

// The meaning of the data for each input and output of the network; a single input or output has an empty name.
struct DataUse {
  struct Input {
    std::string name;
    std::int64_t tokens = 0;  // like ArrayUse::tokens
  };
  struct Target {
    std::string name;
    bool values = false, class_numbers = false;  // like target_values and class_numbers in ArrayUse
    std::optional<std::int64_t> ignored = {};    // like ArrayUse::ignored
    bool unused = false;                         // the data need not have it
  };
  std::vector<Input> inputs = {Input{}};
  std::vector<Target> targets = {Target{}};
  std::optional<ClassWeights> class_weights;  // weights for the only target with classes, in training

  // Whether the model has one input and one output, both without a name.
  bool unnamed() const { return inputs[0].name.empty() && targets[0].name.empty(); }
};

// The info in the config about each data set of a group.
struct DeclaredGroup {
  std::vector<DeclaredInfo> inputs, targets;
  DataUse use;  // inputs and targets in the same order
};

struct LanguageText;  // io/datasets/text/text_tokenizer.h

struct DatasetOptions : Options, DataLocations {
  // Opens one piece of a split at its location `where`. `seed` is the run's seed. Throws Error{data}.
  virtual std::shared_ptr<const Dataset> open(const DataLocation& where, SplitKind split, const DeclaredInfo& declared,
                                              std::uint64_t seed) const = 0;
  // Makes the files in the user's cache that open() needs for a piece, if they are missing. Called before ranks are
  // started, since it may take longer than ranks wait for each other. open() makes missing files, too.
  virtual void prepare(const DataLocation&, const Preparation&) const {}
  // The files and folders that hold the samples of a piece, whatever split reads it. Empty if a path stands for other
  // files in each split. Throws Error{data} if a pattern matches no file.
  virtual std::vector<std::string> files_of(const DataLocation& where) const;
  // The shape of a sample, if the options alone determine it.
  virtual std::optional<Shape> known_shape() const { return std::nullopt; }
  // Whether each position of a sample of tokens has a target and a weight.
  virtual bool predicts_positions() const { return false; }
  // Whether the text of the tokens that are targets is known, as far as the options tell without the files.
  virtual bool knows_text() const { return false; }
  // How a language model that was trained on this data set reads and writes text; empty for other kinds of data sets.
  // Throws Error{config} or {data} if the tokenizer is unknown or cannot be opened.
  virtual std::optional<LanguageText> language_text() const;
  // Whether open_group() supports models with several inputs or outputs.
  virtual bool holds_several() const { return false; }
  // Whether it also supports models with several outputs.
  virtual bool holds_several_outputs() const { return holds_several(); }
  // Reports names of inputs in the data set's own keys that the model's inputs do not have.
  virtual void check_input_names(const std::vector<std::string>&, Reader&) const {}
  // The same for outputs.
  virtual void check_output_names(const std::vector<std::string>&, Reader&) const {}
  // Whether targets are masks of the images, with a class for each pixel, and whether each pixel then has a weight.
  virtual bool holds_masks() const { return false; }
  virtual bool weighs_pixels() const { return false; }
  // Whether targets are images of values, to which `data.target_transform` applies.
  virtual bool holds_image_targets() const { return false; }
  // Whether samples are image files, which take time to decode.
  virtual bool holds_image_files() const { return false; }
  // Opens the data sets for all inputs and outputs of a model; by default one data set for one input and one output.
  // Throws Error{data}.
  virtual DatasetGroup open_group(const DataLocation& where, SplitKind split, const DeclaredGroup& declared,
                                  std::uint64_t seed) const;
  // Opens a split of one or several pieces; by default opens each piece and concatenates them (concatenated.h). Throws
  // Error{data} that names all pieces that cannot be opened.
  virtual DatasetGroup open_pieces(const std::vector<DataLocation>& pieces, SplitKind split,
                                   const DeclaredGroup& declared, std::uint64_t seed) const;
  // Opens samples without targets for a network that was trained on this kind of data set; declared.training is the
  // info of the training split. The paths are images and folders of images, or an array (.npy, .npz, IDX); for a
  // network that was trained on a table, they are tables. Throws Error{data}.
  virtual std::shared_ptr<const Dataset> open_inputs(const std::vector<std::string>& paths,
                                                     const DeclaredInfo& declared) const;
  // Opens samples without targets for each input of a network. For several inputs, `paths` has NAME=PATH for each, or a
  // single folder or .npz file that holds an array for each. The array has the input's name or, in a folder, the name
  // of the file that the config gives in `x`. Throws Error{config} if an input has no path. Tables hold the values of
  // all inputs.
  virtual std::vector<std::shared_ptr<const Dataset>> open_all_inputs(const std::vector<std::string>& paths,
                                                                      const std::vector<NamedInfo>& inputs) const;
};

// Combines the info in the config about the input and the target of a data set with one input and one target.
DeclaredInfo declared_of_both(const DeclaredGroup& declared);
// The `path` of each piece. Throws Error{config}, such as "csv needs `path`", if a piece has none.
std::vector<std::string> paths_of(const std::vector<DataLocation>& pieces, const char* dataset);

// The kinds of data sets; each is defined in the file that has its options.
Section idx_choice();
Section image_folder_choice();
Section segmentation_folder_choice();
Section image_pairs_choice();
Section image_text_choice();
Section audio_classification_choice();
Section nifti_choice();
Section npy_choice();
Section csv_choice();
Section cifar10_choice();
Section tfrecord_choice();
Section webdataset_choice();
Section text_choice();
Section text_classification_choice();
Section synthetic_choice();
const ChoiceTable& dataset_choices();

}  // namespace trainctl
