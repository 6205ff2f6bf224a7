// A line of the table of layers: a layer as the user wrote it, with its sizes. Each use of a layer has its own line.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/error.h"
#include "core/tensor/shape.h"

namespace trainctl {

struct LayerLine {
  std::string name;  // path of the layer
  std::string kind;
  Shape output;                 // shape of one sample
  std::int64_t parameters = 0;  // number of parameters, at the layer's first use; later uses share them
  std::int64_t trainable = 0;   // number of parameters that train
  double flops = 0;             // FLOPs of the forward pass of one sample
  int ops = 0;
  SourceLocation location;
};

}  // namespace trainctl
