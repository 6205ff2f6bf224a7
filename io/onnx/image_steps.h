// Adds crops and resizes of images to the beginning of an ONNX model.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/ops/images/padding.h"
#include "io/onnx/model.h"

namespace trainctl {

// A step of preprocessing: first borders are cut off, then the image is resized bilinearly as in
// io/loader/images/resize.h.
struct ImageStep {
  Borders crop;
  std::int64_t height = 0, width = 0;  // size after the resize; 0: no resize
};

// Replaces the model's only input by `stored`, and adds the steps after it. The old input accepts preprocessed images
// [batch, height, width, channels], the new one images as they are stored in the data. Values are float32 after a
// resize.
void prepend_image_steps(OnnxModel& model, const OnnxValue& stored, const std::vector<ImageStep>& steps);

}  // namespace trainctl
