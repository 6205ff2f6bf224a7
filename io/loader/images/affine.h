// The last pass over every sample: converts stored values to float32 and scales and shifts them, y = scale * x +
// offset.
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor/dtype.h"

namespace trainctl {

// Mean and standard deviation by channel, with which values are normalized; lists of one element apply to all channels.
struct Statistics {
  std::vector<double> mean, stddev;
};

// Scale and offset by channel (element of the last dimension); lists of one element apply to all channels.
struct Affine {
  std::vector<double> scale{1.0};
  std::vector<double> offset{0.0};

  // Appends the map x -> next_scale * x + next_offset to this one; lists of one element apply to all channels. Throws
  // Error{config} if other lists differ in length.
  void then(const std::vector<double>& next_scale, const std::vector<double>& next_offset);
  bool uniform() const { return scale.size() == 1; }
  // Returns the values that are mapped to `y`, in a list like scale and offset; 0 for channels whose scale is 0.
  std::vector<double> stored(double y) const;
};

// Throws Error{config} if the affine map has another number of channels.
void check_channels(const Affine& affine, std::int64_t channels);

// An affine map prepared for rows of up to `elements` values.
class AffineRow {
 public:
  // Throws the error of check_channels().
  AffineRow(const Affine& affine, std::int64_t channels, std::int64_t elements);

  // Maps `count` values, the first of which is the first channel of a pixel; dtype is uint8 or float32.
  void apply(const void* from, DType dtype, std::int64_t count, float* to) const;
  // Maps `pixels` whole pixels in reversed order; `last` points to the first channel of the pixel written first.
  void apply_reversed(const void* last, DType dtype, std::int64_t pixels, float* to) const;
  // Whether one scale and offset apply to all channels; rows may then be of any length.
  bool uniform() const { return uniform_; }

 private:
  std::int64_t channels_;
  bool uniform_, identity_;
  std::vector<float> scale_,
      offset_;  // one value if uniform, otherwise the channels' values, repeated for `elements` values
};

}  // namespace trainctl
