// The table of data sets.
#include "io/datasets/options.h"

namespace trainctl {

const ChoiceTable& dataset_choices() {
  static const ChoiceTable table{
      "data set",
      {idx_choice(), image_folder_choice(), segmentation_folder_choice(), npy_choice(), csv_choice(), cifar10_choice(),
       tfrecord_choice(), webdataset_choice(), synthetic_choice()}};
  return table;
}

DatasetGroup DatasetOptions::open_group(const DataLocation& where, PartKind part, const StatedGroup& stated,
                                        std::uint64_t seed) const {
  require(stated.inputs.size() == 1 && stated.targets.size() == 1, "a data set with one input and one target");
  StatedFacts both = stated.targets[0];
  both.sample = stated.inputs[0].sample;
  both.use.tokens = stated.inputs[0].use.tokens;
  const std::shared_ptr<const Dataset> dataset = open(where, part, both, seed);
  return {{dataset}, {dataset}};
}

}  // namespace trainctl
