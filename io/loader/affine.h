// The last pass over every sample: stored values to float32, scaled and shifted, y = scale * x + offset.
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor/dtype.h"

namespace trainctl {

// Scale and offset of each channel (of each element of the last dimension), or one for all.
struct Affine {
  std::vector<double> scale{1.0};
  std::vector<double> offset{0.0};

  // First this, then x -> scale * x + offset; lists of one element stand for all channels. Throws Error{config} where
  // lists have other lengths.
  void then(const std::vector<double>& next_scale, const std::vector<double>& next_offset);
  bool uniform() const { return scale.size() == 1; }
};

// Throws Error{config} where the affine map is of another number of channels.
void check_channels(const Affine& affine, std::int64_t channels);

// Prepared for rows of up to `elements` values.
class AffineRow {
 public:
  // Throws as check_channels() does.
  AffineRow(const Affine& affine, std::int64_t channels, std::int64_t elements);

  // `count` values that begin with a pixel's first channel; dtype is uint8 or float32.
  void apply(const void* from, DType dtype, std::int64_t count, float* to) const;
  // `pixels` whole pixels in reversed order: `last` is the first channel of the one that comes first.
  void apply_reversed(const void* last, DType dtype, std::int64_t pixels, float* to) const;
  // Whether rows may be longer than stated.
  bool uniform() const { return uniform_; }

 private:
  std::int64_t channels_;
  bool uniform_, identity_;
  std::vector<float> scale_, offset_;  // one value each where uniform, otherwise repeated along a row
};

}  // namespace trainctl
