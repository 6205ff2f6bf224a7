// The transforms of a sample on its way into a batch: fixed geometry, then augmentation, then one pass that writes
// float32 values, scaled and shifted, or values in their stored type.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/random.h"
#include "core/tensor/shape.h"
#include "io/datasets/dataset.h"
#include "io/loader/images/affine.h"
#include "io/loader/images/image.h"
#include "io/loader/images/resize.h"

namespace trainctl {

class Augmentation;
class Canvas;
struct WindowAxis;

// One step of `transform` or `augment`; heights, widths and paddings are in pixels.
struct GeometryStep {
  enum class Kind {
    resize,        // to height x width
    resize_short,  // scales the shorter side to `height`, the other in proportion
    center_crop,   // the rectangle height x width in the middle
    random_crop,   // a rectangle anywhere in the image with `padding` zeros around; in evaluation the one in the middle
    flip_horizontal,  // with probability 1/2; never in evaluation
    flip_vertical,
    augmentation,  // what `augmentation` does to the pixels
    none,          // of masks: what only changes the pixels of images
  };
  Kind kind = Kind::resize;
  std::int64_t height = 0, width = 0, padding = 0;
  SourceLocation location;
  std::shared_ptr<const Augmentation> augmentation;
};

// Whether samples can keep their stored type: tokens, and bytes (which the device scales) that no step resizes, pads
// with zeros (since these must be zero after the scaling) or fills with other values that are no bytes.
bool stays_as_stored(DType stored, const std::vector<GeometryStep>& fixed, const std::vector<GeometryStep>& augment);

// The shape of samples after steps. Throws Error{config} where a step cannot be applied to them.
Shape shape_behind(Shape shape, const std::vector<GeometryStep>& steps);

class Transform {
 public:
  // The memory that one thread needs.
  struct Scratch {
    ResizeScratch resize[2];  // used in turn, since the input of a resize may be the result of another one
  };

  // For samples of this stored shape and type. Without an affine map values keep their stored type. Throws
  // Error{config} at the place of a step that cannot be applied.
  Transform(const Shape& stored, DType dtype, std::vector<GeometryStep> fixed, std::vector<GeometryStep> augment,
            const std::optional<Affine>& affine);
  // For the masks of the images that `images` transforms, one byte a pixel: the same geometry at the same random
  // numbers, by the nearest pixel. What lies outside of the image becomes `outside`.
  Transform(const Transform& images, std::uint8_t outside);

  // Shape and type of a sample after the fixed geometry (prepared), and after all transforms (output).
  const Shape& prepared_shape() const { return prepared_; }
  DType prepared_dtype() const { return prepared_dtype_; }
  const Shape& output_shape() const { return output_; }
  DType output_dtype() const { return row_ ? DType::float32 : prepared_dtype_; }
  // What samples are resized to before anything else is done to them, for those who read them; nothing where another
  // step comes first.
  std::optional<ResizeTarget> first_resize() const;

  // Applies the fixed geometry. The result points into the sample or into the scratch. Throws Error{data} that names
  // the sample where its shape differs from that of the other samples.
  ImageView prepare(const Sample& sample, const Dataset& dataset, std::int64_t number, Scratch& scratch) const;
  // Applies augmentation and the last pass; writes output_shape().count() values of output_dtype() to `to`. Random
  // numbers are a function of (key, sample, position in the list). An augmentation that computes pixels does so in
  // output_dtype(), in memory of the calling thread.
  void finish(const ImageView& prepared, bool training, const RandomKey& key, std::uint64_t sample,
              std::byte* to) const;

 private:
  template <class Rows, class Value>
  void finish(const Rows& rows, const ImageView& prepared, bool training, const RandomKey& key, std::uint64_t sample,
              Value* to) const;
  // The image behind a step, of this size.
  ImageView apply(const ImageView& image, const GeometryStep& step, const Shape& size, int& resizes,
                  Scratch& scratch) const;
  // Copies the window to the canvas.
  void paint(const ImageView& image, const WindowAxis& y, const WindowAxis& x, Canvas& canvas) const;

  std::vector<GeometryStep> fixed_, augment_;
  Shape prepared_, output_;
  DType prepared_dtype_;
  std::optional<AffineRow> row_;  // nothing where values keep their stored type
  AffineRow unscaled_;
  std::vector<float> zero_;   // stored values that the last pass makes zero
  std::uint8_t outside_ = 0;  // where values stay bytes: what lies outside of the image
  bool masks_ = false;
};

}  // namespace trainctl
