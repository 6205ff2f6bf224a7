// The table of layers.
#include "core/layers/table.h"

#include "core/layers/batch_normalization.h"
#include "core/layers/blocks.h"
#include "core/layers/conv2d.h"
#include "core/layers/dense.h"
#include "core/layers/merging.h"
#include "core/layers/pooling2d.h"
#include "core/layers/simple.h"

namespace trainctl {

const ChoiceTable& layer_choices() {
  static const ChoiceTable table{"layer",
                                 {
                                     DenseOptions::keys(),
                                     embedding(),
                                     Conv2dOptions::keys(),
                                     MaxPooling2dOptions::keys(),
                                     AveragePooling2dOptions::keys(),
                                     GlobalAveragePooling2dOptions::keys(),
                                     BatchNormalizationOptions::keys(),
                                     layer_normalization(),
                                     zero_padding2d(),
                                     DropoutOptions::keys(),
                                     ActivationLayerOptions::keys(),
                                     FlattenOptions::keys(),
                                     AddOptions::keys(),
                                     ConcatenateOptions::keys(),
                                     ResidualOptions::keys(),
                                     RepeatOptions::keys(),
                                 }};
  return table;
}

}  // namespace trainctl
