// The steps that bring images into the form that a network of Hugging Face was trained on.
#pragma once

#include <string>
#include <vector>

#include "core/base/document.h"
#include "core/tensor/shape.h"

namespace trainctl {

// Returns `data.transform` for images of the shape [height, width, channels]: resize, and rescale and normalize as the
// folder's preprocessor_config.json says; where it does not say it, by the defaults of transformers' image processors.
// Adds sentences for the user about what it does not say, or what these steps do not do. Throws Error{data} if the file
// cannot be read.
Node image_steps(const std::string& folder, const Shape& image, std::vector<std::string>& notes);

}  // namespace trainctl
