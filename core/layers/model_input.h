// An input of a model: its name, and what samples of it are.
#pragma once

#include <string>

#include "core/graph/ops/normalize.h"
#include "core/tensor/shape.h"

namespace trainctl {

struct ModelInput {
  std::string name;     // as in `model.inputs`; empty: of the only one
  Shape sample;         // of one sample: [28, 28, 1]
  SampleFormat format;  // of samples in a batch
};

}  // namespace trainctl
