// Applies transforms. Crops and flips only move a window over the image, through which the last pass reads.
#include "io/loader/images/transform.h"

#include <algorithm>

#include "core/base/format.h"
#include "io/loader/images/augmentation.h"
#include "io/loader/images/window.h"
#include "io/loader/signals/mel_spectrogram.h"

namespace trainctl {
namespace {

using Kind = GeometryStep::Kind;

bool is_resize(const GeometryStep& step) { return step.kind == Kind::resize || step.kind == Kind::resize_short; }

ResizeTarget resize_target(const GeometryStep& step) {
  return {step.height, step.width, step.kind == Kind::resize_short};
}

// The shape of an image after a step.
Shape size_after(const Shape& image, const GeometryStep& step) {
  switch (step.kind) {
    case Kind::resize:
    case Kind::resize_short:
      return resize_target(step).of(image);
    case Kind::flip_horizontal:
    case Kind::flip_vertical:
    case Kind::augmentation:
    case Kind::none:
      return image;
    default:
      return {step.height, step.width, image[2]};
  }
}

bool fits(const Shape& image, const GeometryStep& step) {
  if (step.kind != Kind::center_crop && step.kind != Kind::random_crop) return true;
  return step.height <= image[0] + 2 * step.padding * step.scale_y &&
         step.width <= image[1] + 2 * step.padding * step.scale_x;
}

bool resizes(const std::vector<GeometryStep>& steps) { return std::any_of(steps.begin(), steps.end(), is_resize); }

bool is_spectrogram(const GeometryStep& step) { return step.kind == Kind::spectrogram; }

bool flips(const GeometryStep& step) { return step.kind == Kind::flip_horizontal || step.kind == Kind::flip_vertical; }

// Where a crop of a side begins: at random or, in evaluation, so that the crop is in the middle. `free` is the number
// of pixels that the crop leaves out. A target with `scale` pixels for each pixel of its input begins at the same place
// as its input.
std::int64_t crop_offset(std::int64_t free, std::int64_t padding, std::int64_t scale, bool training, Draws& draws) {
  const std::int64_t units = free / scale;
  return (training ? draws.pick(units + 2 * padding + 1) - padding : units / 2) * scale;
}

std::int64_t channels_of(const Shape& shape) { return as_image(nullptr, DType::uint8, shape).channels; }

}  // namespace

std::string list_of_steps(const DatasetInfo& info) {
  return info.image_targets ? "`target_transform` or, if that is not set, in `transform`" : "`transform`";
}

Shape shape_after(Shape shape, const std::vector<GeometryStep>& steps) {
  for (const GeometryStep& step : steps) {
    if (is_spectrogram(step)) {
      const std::optional<Shape> after = step.spectrogram->shape_of(shape);
      if (!after) {
        throw Error(
            ErrorKind::config, step.location,
            format("mel_spectrogram needs sound of shape (values) or (values, channels), not samples of shape {}",
                   to_string(shape)));
      }
      shape = *after;
      continue;
    }
    if (shape.rank() != 3) {
      throw Error(ErrorKind::config, step.location,
                  format("only images can be resized, cropped, flipped or augmented, not samples of shape {}",
                         to_string(shape)));
    }
    if (!fits(shape, step)) {
      throw Error(ErrorKind::config, step.location,
                  format("a crop of {}x{} does not fit into an image of {}x{} with padding {}", step.height, step.width,
                         shape[0], shape[1], step.padding));
    }
    shape = size_after(shape, step);
  }
  return shape;
}

bool stays_as_stored(DType stored, const std::vector<GeometryStep>& fixed, const std::vector<GeometryStep>& augment) {
  const auto leaves = [](const GeometryStep& step) {
    return step.padding > 0 || (step.augmentation && !step.augmentation->keeps_bytes());
  };
  if (stored == DType::int32) return true;
  return stored == DType::uint8 && !resizes(fixed) && std::none_of(fixed.begin(), fixed.end(), is_spectrogram) &&
         std::none_of(augment.begin(), augment.end(), leaves);
}

Transform::Transform(const Shape& stored, DType dtype, std::vector<GeometryStep> fixed,
                     std::vector<GeometryStep> augment, const std::optional<Affine>& affine)
    : fixed_(std::move(fixed)),
      augment_(std::move(augment)),
      prepared_(shape_after(stored, fixed_)),
      output_(shape_after(prepared_, augment_)),
      prepared_dtype_(resizes(fixed_) ? DType::float32 : dtype),
      unscaled_(Affine{}, channels_of(output_), 0) {
  require(affine || stays_as_stored(dtype, fixed_, augment_), "the values cannot keep their stored type");
  const auto spectrogram = std::find_if(fixed_.begin(), fixed_.end(), is_spectrogram);
  if (spectrogram != fixed_.end() && dtype != DType::float32) {
    throw Error(ErrorKind::config, spectrogram->location,
                "mel_spectrogram needs sound in floating-point numbers, not bytes", "store it as numbers from -1 to 1");
  }
  if (!affine) return;
  row_.emplace(*affine, channels_of(output_), output_.rank() == 3 ? output_[1] * output_[2] : output_.count());
  for (const double value : affine->stored(0)) zero_.push_back(static_cast<float>(value));
}

Transform::Transform(const Transform& images, std::uint8_t outside)
    : fixed_(images.fixed_),
      augment_(images.augment_),
      prepared_{images.prepared_[0], images.prepared_[1], 1},
      output_{images.output_[0], images.output_[1], 1},
      prepared_dtype_(DType::uint8),
      unscaled_(Affine{}, 1, 0),
      outside_(outside),
      masks_(true) {
  for (GeometryStep& step : augment_) {
    if (step.kind != Kind::augmentation) continue;
    step.augmentation = step.augmentation->of_masks(outside);
    if (!step.augmentation) step.kind = Kind::none;
  }
}

std::optional<ResizeTarget> Transform::first_resize() const {
  return !fixed_.empty() && is_resize(fixed_[0]) ? std::optional(resize_target(fixed_[0])) : std::nullopt;
}

ImageView Transform::apply(const ImageView& image, const GeometryStep& step, const Shape& size, int& resizes,
                           Scratch& scratch) const {
  if (step.kind == Kind::center_crop) {
    return image.crop((image.height - size[0]) / 2, (image.width - size[1]) / 2, size[0], size[1]);
  }
  ResizeScratch& memory = scratch.resize[resizes++ % 2];
  return masks_ ? resize_nearest(image, size[0], size[1], memory) : resize(image, size[0], size[1], memory);
}

ImageView Transform::prepare(const Sample& sample, const Dataset& dataset, std::int64_t number,
                             Scratch& scratch) const {
  ImageView image = as_image(sample.values, sample.dtype, sample.shape);
  // The sizes are computed from the stored image. The decoded image may be smaller; the first step is then a resize,
  // after which the sizes agree.
  Shape size;
  if (!fixed_.empty()) size = as_image(nullptr, sample.dtype, sample.stored_shape()).shape();
  int resizes = 0;
  for (const GeometryStep& step : fixed_) {
    if (is_spectrogram(step)) {
      size = shape_after(sample.shape, {step});
      step.spectrogram->apply(static_cast<const float*>(sample.values), sample.shape, scratch.spectrogram);
      image = as_image(scratch.spectrogram.data(), DType::float32, size);
      continue;
    }
    if (!fits(size, step)) {
      data_error(dataset.name_of(number),
                 format("is {}x{}, which is too small for a crop of {}x{}", size[0], size[1], step.height, step.width),
                 "put a resize before the crop");
    }
    size = size_after(size, step);
    image = apply(image, step, size, resizes, scratch);
  }
  const ImageView expected = as_image(nullptr, DType::uint8, prepared_);
  if (image.height != expected.height || image.width != expected.width || image.channels != expected.channels) {
    data_error(dataset.name_of(number),
               format("has shape {}, but {} is expected", to_string(image.shape()), to_string(expected.shape())),
               format("images of different sizes need `resize: [height, width]`, or `resize` and `center_crop`, in {}",
                      list_of_steps(dataset.info())));
  }
  return image;
}

void Transform::finish(const ImageView& prepared, bool training, const RandomKey& key, std::uint64_t sample,
                       std::byte* to) const {
  if (row_) return finish(*row_, prepared, training, key, sample, reinterpret_cast<float*>(to));
  if (prepared_dtype_ == DType::int32) {
    return finish(StoredRow<std::int32_t>{prepared.channels}, prepared, training, key, sample,
                  reinterpret_cast<std::int32_t*>(to));
  }
  finish(StoredRow<std::uint8_t>{prepared.channels}, prepared, training, key, sample,
         reinterpret_cast<std::uint8_t*>(to));
}

void Transform::paint(const ImageView& image, const WindowAxis& y, const WindowAxis& x, Canvas& canvas) const {
  if (row_) {
    auto* to = canvas.blank<float>(y.size, x.size, image.channels);
    read_window<AffineRow, float>(image, y, x, unscaled_, zero_, to);
  } else {
    auto* to = canvas.blank<std::uint8_t>(y.size, x.size, image.channels);
    read_window<StoredRow<std::uint8_t>, std::uint8_t>(image, y, x, {image.channels}, {&outside_, 1}, to);
  }
  canvas.turn();
}

template <class Rows, class Value>
void Transform::finish(const Rows& rows, const ImageView& prepared, bool training, const RandomKey& key,
                       std::uint64_t sample, Value* to) const {
  thread_local Canvas canvas;
  ImageView image = prepared;
  WindowAxis y(image.height), x(image.width);
  std::uint32_t index = 0;
  for (const GeometryStep& step : augment_) {
    Draws draws(key, sample, index++);
    if (step.kind == Kind::random_crop) {
      y.crop(crop_offset(y.size - step.height, step.padding, step.scale_y, training, draws), step.height);
      x.crop(crop_offset(x.size - step.width, step.padding, step.scale_x, training, draws), step.width);
    } else if (step.augmentation && training) {
      paint(image, y, x, canvas);
      step.augmentation->apply(canvas, draws);
      image = canvas.view();
      y = WindowAxis(image.height);
      x = WindowAxis(image.width);
    } else if (training && flips(step) && draws.word() >> 31) {
      (step.kind == Kind::flip_horizontal ? x : y).flip();
    }
  }
  const auto outside = static_cast<Value>(outside_);
  read_window<Rows, Value>(image, y, x, rows, {&outside, 1}, to);
}

}  // namespace trainctl
