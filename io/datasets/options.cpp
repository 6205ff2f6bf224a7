// The table of data sets.
#include "io/datasets/options.h"

#include "core/base/format.h"

namespace trainctl {

const ChoiceTable& dataset_choices() {
  static const ChoiceTable table{"data set",
                                 {idx_choice(), image_folder_choice(), npy_choice(), csv_choice(), synthetic_choice()}};
  return table;
}

DatasetGroup DatasetOptions::open_group(const DataLocation& where, PartKind part, const StatedGroup& stated,
                                        std::uint64_t seed) const {
  if (stated.inputs.size() == 1 && stated.targets.size() == 1) {
    StatedFacts both = stated.targets[0];
    both.sample = stated.inputs[0].sample;
    both.use.tokens = stated.inputs[0].use.tokens;
    const std::shared_ptr<const Dataset> dataset = open(where, part, both, seed);
    return {{dataset}, {dataset}};
  }
  throw Error(ErrorKind::config,
              format("the model has {} inputs and {} outputs, and this data set one of each", stated.inputs.size(),
                     stated.targets.size()),
              "npy takes several: x: {NAME: FILE, ...} and y: {NAME: FILE, ...}");
}

}  // namespace trainctl
