// The table of data sets.
#include "io/datasets/options.h"

namespace trainctl {

const ChoiceTable& dataset_choices() {
  static const ChoiceTable table{"data set",
                                 {idx_choice(), image_folder_choice(), npy_choice(), csv_choice(), synthetic_choice()}};
  return table;
}

}  // namespace trainctl
