// Crops and resizes of images as the beginning of an ONNX model.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/ops/images/padding.h"
#include "io/onnx/model.h"

namespace trainctl {

// What is done to an image: first borders are cut off, then it is resized, bilinear as io/loader/images/resize.h says.
struct ImageStep {
  Borders crop;
  std::int64_t height = 0, width = 0;  // that it is resized to; 0: it is not
};

// Makes the model's only input, which takes images [batch, height, width, channels] behind the steps, take them as they
// are stored, `stored` for each sample. Behind a resize values are float32.
void prepend_image_steps(OnnxModel& model, const OnnxValue& stored, const std::vector<ImageStep>& steps);

}  // namespace trainctl
