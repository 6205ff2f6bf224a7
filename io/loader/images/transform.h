// Transforms a sample for a batch: applies the fixed geometry, then augmentation, then one pass that writes float32
// values, scaled and shifted, or values in their stored type.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
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
class MelSpectrogram;
struct WindowAxis;

// One step of `transform` or `augment`; heights and widths are in pixels.
struct GeometryStep {
  enum class Kind {
    resize,           // to height x width
    resize_short,     // scales the shorter side to `height`, the other in proportion
    center_crop,      // the central rectangle of height x width
    random_crop,      // a random rectangle of the image, padded with `padding` zeros; in evaluation the central one
    flip_horizontal,  // with probability 1/2; never in evaluation
    flip_vertical,
    augmentation,  // applies `augmentation` to the pixels
    none,          // for masks and targets: an augmentation that does not move pixels
    spectrogram,   // replaces sound by `spectrogram`; only as the first step
  };
  Kind kind = Kind::resize;
  std::int64_t height = 0, width = 0;
  std::int64_t padding = 0;  // in pixels of the inputs
  SourceLocation location;
  std::shared_ptr<const Augmentation> augmentation = {};
  std::shared_ptr<const MelSpectrogram> spectrogram = {};
  // For random crops of targets: how many pixels of a target there are for each pixel of its input.
  std::int64_t scale_y = 1, scale_x = 1;
};

// Whether samples can keep their stored type. Tokens can. Bytes, which the device scales, can unless a step resizes
// them, pads them with zeros (which must be zero after the scaling) or writes values that are not bytes.
bool stays_as_stored(DType stored, const std::vector<GeometryStep>& fixed, const std::vector<GeometryStep>& augment);

// Names the list of the config that holds the fixed steps of a data set's samples, for errors.
std::string list_of_steps(const DatasetInfo& info);

// Returns the shape of samples after steps. Throws Error{config} if a step cannot be applied to them.
Shape shape_after(Shape shape, const std::vector<GeometryStep>& steps);

class Transform {
 public:
  // The memory that one thread needs.
  struct Scratch {
    ResizeScratch resize[2];  // used alternately, since the input of a resize may be the result of the previous one
    std::vector<float> spectrogram;
  };

  // Makes the transform for samples of this stored shape and type. Without an affine map, values keep their stored
  // type. Throws Error{config} with the location of a step that cannot be applied.
  Transform(const Shape& stored, DType dtype, std::vector<GeometryStep> fixed, std::vector<GeometryStep> augment,
            const std::optional<Affine>& affine);
  // Makes the transform for masks, with one byte per pixel, of the images that `images` transforms: applies the same
  // geometry with the same random numbers, with the nearest pixel. Pixels outside of the image become `outside`.
  Transform(const Transform& images, std::uint8_t outside);

  // The shape and type of a sample after the fixed geometry (prepared) and after all transforms (output).
  const Shape& prepared_shape() const { return prepared_; }
  DType prepared_dtype() const { return prepared_dtype_; }
  const Shape& output_shape() const { return output_; }
  DType output_dtype() const { return row_ ? DType::float32 : prepared_dtype_; }
  // The size to which the first step resizes samples, for decoders; empty if the first step is not a resize.
  std::optional<ResizeTarget> first_resize() const;

  // Applies the fixed geometry. The result points into the sample or into the scratch. Throws Error{data} that names
  // the sample if its shape differs from the shape of the other samples.
  ImageView prepare(const Sample& sample, const Dataset& dataset, std::int64_t number, Scratch& scratch) const;
  // Applies augmentation and the last pass; writes output_shape().count() values of output_dtype() to `to`. Random
  // numbers depend on (key, sample, position in the list). Augmentations compute pixels in output_dtype(), in memory of
  // the calling thread.
  void finish(const ImageView& prepared, bool training, const RandomKey& key, std::uint64_t sample,
              std::byte* to) const;

 private:
  template <class Rows, class Value>
  void finish(const Rows& rows, const ImageView& prepared, bool training, const RandomKey& key, std::uint64_t sample,
              Value* to) const;
  // Returns the image after a step; its height and width are those of `size`.
  ImageView apply(const ImageView& image, const GeometryStep& step, const Shape& size, int& resizes,
                  Scratch& scratch) const;
  // Copies the pixels in the window to the canvas.
  void paint(const ImageView& image, const WindowAxis& y, const WindowAxis& x, Canvas& canvas) const;

  std::vector<GeometryStep> fixed_, augment_;
  Shape prepared_, output_;
  DType prepared_dtype_;
  std::optional<AffineRow> row_;  // empty if values keep their stored type
  AffineRow unscaled_;
  std::vector<float> zero_;   // stored values that the last pass makes zero
  std::uint8_t outside_ = 0;  // if values stay bytes: the value outside of the image
  bool masks_ = false;
};

}  // namespace trainctl
