// A layer as the user wrote it, in numbers: what tables of layers show.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/error.h"
#include "core/tensor/shape.h"

namespace trainctl {

struct LayerLine {
  std::string name;  // the path
  std::string kind;
  Shape output;  // of one sample
  std::int64_t parameters = 0;
  std::int64_t trainable = 0;
  double flops = 0;  // forward, one sample
  int ops = 0;
  Place place;
};

}  // namespace trainctl
