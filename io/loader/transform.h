// What happens to a sample on its way into a batch: geometry that is the same every time, then augmentation, then one
// pass that writes float32, scaled and shifted, or bytes as they are.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/random.h"
#include "core/tensor/shape.h"
#include "io/datasets/dataset.h"
#include "io/loader/affine.h"
#include "io/loader/image.h"
#include "io/loader/resize.h"

namespace trainctl {

// One step of the geometry, in the order of the config.
struct GeometryStep {
  enum class Kind {
    resize,           // to height x width
    resize_short,     // so that the shorter side becomes `height`, the other in proportion
    center_crop,      // the rectangle height x width in the middle
    random_crop,      // one anywhere in the image with `padding` zeros around; in evaluation the one in the middle
    flip_horizontal,  // with probability 1/2; never in evaluation
    flip_vertical,
  };
  Kind kind = Kind::resize;
  std::int64_t height = 0, width = 0, padding = 0;
  Place place;
};

// Whether samples can stay as they are stored: tokens, and bytes, which are scaled where they are used, if nothing
// resizes them, and nothing adds zeros, which are zero behind the scaling.
bool stays_as_stored(DType stored, const std::vector<GeometryStep>& fixed, const std::vector<GeometryStep>& augment);

// The shape of samples behind steps. Throws Error{config} where a step cannot be done to them.
Shape shape_behind(Shape shape, const std::vector<GeometryStep>& steps);

class Transform {
 public:
  // Memory of one thread.
  struct Scratch {
    ResizeScratch resize[2];  // in turn: the input of a resize may be the result of one
  };

  // For samples of this stored shape and type. Throws Error{config} with a step's place where it cannot be applied.
  // Without an affine map values stay as they are stored: only where they can.
  Transform(const Shape& stored, DType dtype, std::vector<GeometryStep> fixed, std::vector<GeometryStep> augment,
            const std::optional<Affine>& affine);

  // Of a sample behind the fixed geometry, and behind everything.
  const Shape& prepared_shape() const { return prepared_; }
  DType prepared_dtype() const { return prepared_dtype_; }
  const Shape& output_shape() const { return output_; }
  DType output_dtype() const { return row_ ? DType::float32 : prepared_dtype_; }

  // The fixed geometry. The result points into the sample or into the scratch. Throws Error{data} that names the sample
  // where its shape differs from that of the others.
  ImageView prepare(const Sample& sample, const Dataset& dataset, std::int64_t number, Scratch& scratch) const;
  // Augmentation and the last pass; writes output_shape().count() values. Random numbers are those of (key, sample).
  void finish(const ImageView& prepared, bool training, const RandomKey& key, std::uint64_t sample,
              std::byte* to) const;

 private:
  template <class Rows, class Value>
  void finish(const Rows& rows, const ImageView& prepared, bool training, const RandomKey& key, std::uint64_t sample,
              Value* to) const;
  ImageView apply(const ImageView& image, const GeometryStep& step, int& resizes, Scratch& scratch) const;

  std::vector<GeometryStep> fixed_, augment_;
  Shape prepared_, output_;
  DType prepared_dtype_;
  std::optional<AffineRow> row_;  // none: values stay as they are stored
};

}  // namespace trainctl
