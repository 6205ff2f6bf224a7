// The `dataset` of a config: where its samples lie and how they are opened.
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

// Parts of synthetic data lie so far from each other in the endless set.
inline constexpr std::int64_t most_synthetic_samples = std::int64_t{1} << 40;

// Where the samples of a part lie; every data set has some of these keys, `validation` and `test` have those of the
// data set.
struct DataLocation {
  Path path;
  Path images, labels;                  // idx
  ByName<Path> x, y;                    // npy
  Path weights;                         // npy
  std::optional<std::int64_t> samples;  // synthetic
};

struct DatasetOptions : Options, DataLocation {
  // Opens a part, whose `where` may be other than that of the training part. Throws Error{data}.
  virtual std::shared_ptr<const Dataset> open(const DataLocation& where, PartKind part, const StatedFacts& stated,
                                              std::uint64_t seed) const = 0;
  // Whether it opens what a model with several inputs or outputs needs.
  virtual bool holds_several() const { return false; }
  // The same for all inputs and outputs of a model, which are one of each where the data set does not hold several.
  virtual DatasetGroup open_group(const DataLocation& where, PartKind part, const StatedGroup& stated,
                                  std::uint64_t seed) const;
};

// The data sets that there are, each in a file with its options.
Section idx_choice();
Section image_folder_choice();
Section npy_choice();
Section csv_choice();
Section synthetic_choice();
const ChoiceTable& dataset_choices();

}  // namespace trainctl
