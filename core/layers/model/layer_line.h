// A layer as the user wrote it, with its sizes, as tables of layers show it; each use of a layer is a line of its own.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/error.h"
#include "core/tensor/shape.h"

namespace trainctl {

struct LayerLine {
  std::string name;  // path of the layer
  std::string kind;
  Shape output;                 // of one sample
  std::int64_t parameters = 0;  // of a layer's first use; further ones share them
  std::int64_t trainable = 0;
  double flops = 0;  // of the forward pass of one sample
  int ops = 0;
  SourceLocation location;
};

}  // namespace trainctl
