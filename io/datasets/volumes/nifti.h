// Reads volumes in NIfTI-1 files, .nii and .nii.gz.
#pragma once

#include <string>
#include <vector>

#include "core/tensor/shape.h"
#include "io/datasets/arrays/array.h"

namespace trainctl {

// A volume as it is stored, x fastest: [depth, height, width], or [channels, depth, height, width] if the file has a
// fourth dimension. A stored value v means slope * v + intercept.
struct NiftiVolume {
  Array stored;
  double slope = 1, intercept = 0;

  // The shape [depth, height, width, channels].
  Shape shape() const;
  // Writes the values in the order of shape().
  void read(float* to) const;
};

// Whether a file's name is that of a NIfTI file.
bool is_nifti_name(const std::string& name);

// Throws Error{data} with the file and what is wrong: another format, a type of values that is not supported, sizes
// that do not agree with the size of the file, or a damaged compressed stream.
NiftiVolume read_nifti(const std::string& path);

}  // namespace trainctl
