// Applies transforms: crops and flips only move a window over the image, through which the last pass reads.
#include "io/loader/transform.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/format.h"

namespace trainctl {
namespace {

using Kind = GeometryStep::Kind;

// One axis of the window: output i is source element base + step * i, or zero where that is outside [begin, end).
struct Axis {
  std::int64_t base = 0, step = 1, size = 0, begin = 0, end = 0;

  explicit Axis(std::int64_t n) : size(n), end(n) {}

  void crop(std::int64_t offset, std::int64_t length) {
    const std::int64_t low = step > 0 ? base : base - (size - 1);
    begin = std::max(begin, low);
    end = std::min(end, low + size);
    base += step * offset;
    size = length;
  }
  void flip() {
    base += step * (size - 1);
    step = -step;
  }
};

std::int64_t scaled(std::int64_t size, std::int64_t shorter, std::int64_t to) {
  return std::max<std::int64_t>(
      1, std::llround(static_cast<double>(size) * static_cast<double>(to) / static_cast<double>(shorter)));
}

// The shape of an image after a step.
Shape size_behind(const Shape& image, const GeometryStep& step) {
  const std::int64_t shorter = std::min(image[0], image[1]);
  switch (step.kind) {
    case Kind::resize_short:
      return {scaled(image[0], shorter, step.height), scaled(image[1], shorter, step.height), image[2]};
    case Kind::flip_horizontal:
    case Kind::flip_vertical:
      return image;
    default:
      return {step.height, step.width, image[2]};
  }
}

bool fits(const Shape& image, const GeometryStep& step) {
  if (step.kind != Kind::center_crop && step.kind != Kind::random_crop) return true;
  return step.height <= image[0] + 2 * step.padding && step.width <= image[1] + 2 * step.padding;
}

// A number in [0, choices), from a random word.
std::int64_t pick(std::uint32_t word, std::int64_t choices) {
  return static_cast<std::int64_t>(std::uint64_t{word} * static_cast<std::uint64_t>(choices) >> 32);
}

// Copies rows whose values stay as they are stored; has the interface of AffineRow.
template <class T>
struct StoredRow {
  std::int64_t channels;

  bool uniform() const { return true; }
  void apply(const void* from, DType, std::int64_t count, T* to) const {
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(T));
  }
  void apply_reversed(const void* last, DType, std::int64_t pixels, T* to) const {
    const auto* pixel = static_cast<const T*>(last);
    for (std::int64_t i = 0; i < pixels; ++i, pixel -= channels, to += channels) std::copy_n(pixel, channels, to);
  }
};

bool resizes(const std::vector<GeometryStep>& steps) {
  return std::any_of(steps.begin(), steps.end(), [](const GeometryStep& step) {
    return step.kind == Kind::resize || step.kind == Kind::resize_short;
  });
}

std::int64_t channels_of(const Shape& shape) { return as_image(nullptr, DType::uint8, shape).channels; }

}  // namespace

Shape shape_behind(Shape shape, const std::vector<GeometryStep>& steps) {
  for (const GeometryStep& step : steps) {
    if (shape.rank() != 3) {
      throw Error(ErrorKind::config, step.place,
                  format("only images can be resized, cropped or flipped, not samples of shape {}", to_string(shape)));
    }
    if (!fits(shape, step)) {
      throw Error(ErrorKind::config, step.place,
                  format("a crop of {}x{} does not fit into {}x{} with padding {}", step.height, step.width, shape[0],
                         shape[1], step.padding));
    }
    shape = size_behind(shape, step);
  }
  return shape;
}

bool stays_as_stored(DType stored, const std::vector<GeometryStep>& fixed, const std::vector<GeometryStep>& augment) {
  const auto pads = [](const GeometryStep& step) { return step.padding > 0; };
  if (stored == DType::int32) return true;
  return stored == DType::uint8 && !resizes(fixed) && std::none_of(augment.begin(), augment.end(), pads);
}

Transform::Transform(const Shape& stored, DType dtype, std::vector<GeometryStep> fixed,
                     std::vector<GeometryStep> augment, const std::optional<Affine>& affine)
    : fixed_(std::move(fixed)),
      augment_(std::move(augment)),
      prepared_(shape_behind(stored, fixed_)),
      output_(shape_behind(prepared_, augment_)),
      prepared_dtype_(resizes(fixed_) ? DType::float32 : dtype) {
  require(affine || stays_as_stored(dtype, fixed_, augment_), "values that stay as they are stored");
  if (affine)
    row_.emplace(*affine, channels_of(output_), output_.rank() == 3 ? output_[1] * output_[2] : output_.count());
}

ImageView Transform::apply(const ImageView& image, const GeometryStep& step, int& resizes, Scratch& scratch) const {
  const Shape size = size_behind(image.shape(), step);
  if (step.kind == Kind::center_crop) {
    return image.part((image.height - size[0]) / 2, (image.width - size[1]) / 2, size[0], size[1]);
  }
  return resize(image, size[0], size[1], scratch.resize[resizes++ % 2]);
}

ImageView Transform::prepare(const Sample& sample, const Dataset& dataset, std::int64_t number,
                             Scratch& scratch) const {
  ImageView image = as_image(sample.values, sample.dtype, sample.shape);
  int resizes = 0;
  for (const GeometryStep& step : fixed_) {
    if (!fits(image.shape(), step)) {
      data_error(dataset.name_of(number),
                 format("is {}x{}, too small for a crop of {}x{}", image.height, image.width, step.height, step.width),
                 "put a resize before the crop");
    }
    image = apply(image, step, resizes, scratch);
  }
  const ImageView expected = as_image(nullptr, DType::uint8, prepared_);
  if (image.height != expected.height || image.width != expected.width || image.channels != expected.channels) {
    data_error(dataset.name_of(number),
               format("is {} where {} is expected", to_string(image.shape()), to_string(expected.shape())),
               "images of unequal size need `resize: [height, width]`, or `resize` and `center_crop`, in `transform`");
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

template <class Rows, class Value>
void Transform::finish(const Rows& rows, const ImageView& prepared, bool training, const RandomKey& key,
                       std::uint64_t sample, Value* to) const {
  Axis y(prepared.height), x(prepared.width);
  std::uint32_t index = 0;
  for (const GeometryStep& step : augment_) {
    const PhiloxBlock random = training ? key.block(sample, index) : PhiloxBlock{};
    ++index;
    if (step.kind == Kind::random_crop) {
      const std::int64_t free_y = y.size - step.height, free_x = x.size - step.width, padding = step.padding;
      y.crop(training ? pick(random[0], free_y + 2 * padding + 1) - padding : free_y / 2, step.height);
      x.crop(training ? pick(random[1], free_x + 2 * padding + 1) - padding : free_x / 2, step.width);
    } else if (training && random[0] >> 31) {
      (step.kind == Kind::flip_horizontal ? x : y).flip();
    }
  }
  const std::int64_t channels = prepared.channels, row = x.size * channels, element = size_of(prepared.dtype);
  const auto* pixels = static_cast<const std::byte*>(prepared.data);
  const bool whole = y.step == 1 && x.step == 1 && y.base == 0 && x.base == 0 && x.size == prepared.width &&
                     y.size == prepared.height && prepared.stride == row && x.end - x.begin == x.size &&
                     y.end - y.begin == y.size;
  if (whole && (rows.uniform() || y.size == 1)) return rows.apply(pixels, prepared.dtype, y.size * row, to);
  // Outputs [left, right) of each row lie in the image, the others are zero.
  const std::int64_t left = std::clamp<std::int64_t>(x.step > 0 ? x.begin - x.base : x.base - (x.end - 1), 0, x.size);
  const std::int64_t right = std::clamp<std::int64_t>(x.step > 0 ? x.end - x.base : x.base - x.begin + 1, left, x.size);
  for (std::int64_t i = 0; i < y.size; ++i, to += row) {
    const std::int64_t source = y.base + y.step * i;
    if (source < y.begin || source >= y.end || left == right) {
      std::fill_n(to, row, Value{});
      continue;
    }
    std::fill_n(to, left * channels, Value{});
    const std::byte* from = pixels + (source * prepared.stride + (x.base + x.step * left) * channels) * element;
    if (x.step > 0) {
      rows.apply(from, prepared.dtype, (right - left) * channels, to + left * channels);
    } else {
      rows.apply_reversed(from, prepared.dtype, right - left, to + left * channels);
    }
    std::fill_n(to + right * channels, (x.size - right) * channels, Value{});
  }
}

}  // namespace trainctl
