// An input of a model: its name, and the shape and format of its samples.
#pragma once

#include <string>

#include "core/graph/ops/normalization/normalize.h"
#include "core/tensor/shape.h"

namespace trainctl {

struct ModelInput {
  std::string name;     // as in `model.inputs`; empty: the only input
  Shape sample;         // shape of one sample: [28, 28, 1]
  SampleFormat format;  // format of the samples in a batch
};

}  // namespace trainctl
