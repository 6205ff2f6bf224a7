// The transforms of a network's input as a part of the network.
#pragma once

#include <string>
#include <vector>

#include "core/layers/model/model_input.h"
#include "io/loader/inputs/kept_input.h"
#include "io/loader/options.h"
#include "io/onnx/image_steps.h"

namespace trainctl {

// An input that takes samples as they are stored.
struct StoredInput {
  Shape sample;  // as stored, and its dtype
  DType dtype = DType::float32;
  bool any_size = false;         // images may have other heights and widths: they are first resized to one
  std::vector<ImageStep> steps;  // what becomes of images
  ModelInput input;              // behind the steps; its format scales
};

// Throws Error{config} that names the transform for which a network has no layer.
StoredInput stored_input(const DataOptions& options, const std::string& name, const KeptInput& kept);

}  // namespace trainctl
