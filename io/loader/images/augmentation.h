// The interface of augmentations that compute new pixels: their random numbers, and the image that they change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "io/loader/images/image.h"

namespace trainctl {

// The random numbers of one augmentation for one sample: a function of the key, the sample and the augmentation's
// position in its list. Block 0 is key.block(sample, position); further blocks have their number in the bits from 24
// on.
class Draws {
 public:
  Draws(const RandomKey& key, std::uint64_t sample, std::uint32_t position)
      : key_(key), sample_(sample), position_(position) {}

  std::uint32_t word() {
    if (used_ % 4 == 0) block_ = key_.block(sample_, position_ | (used_ / 4) << 24);
    return block_[used_++ % 4];
  }
  // A number in [0, 1).
  double share() { return word() * 0x1p-32; }
  // A number from `low` to `high`.
  double between(double low, double high) { return low + (high - low) * share(); }
  // A whole number in [0, choices).
  std::int64_t pick(std::int64_t choices) {
    return static_cast<std::int64_t>(std::uint64_t{word()} * static_cast<std::uint64_t>(choices) >> 32);
  }

 private:
  RandomKey key_;
  std::uint64_t sample_;
  std::uint32_t position_;
  std::uint32_t used_ = 0;  // words
  PhiloxBlock block_{};
};

// An image with contiguous pixels, uint8 or float32, and memory for the image that replaces it.
class Canvas {
 public:
  std::int64_t height() const { return front_.height; }
  std::int64_t width() const { return front_.width; }
  std::int64_t channels() const { return front_.channels; }
  std::int64_t count() const { return front_.height * front_.width * front_.channels; }
  DType dtype() const { return front_.dtype; }
  template <class T>
  T* pixels() {
    return reinterpret_cast<T*>(front_.bytes.data());
  }
  ImageView view() const {
    return {front_.bytes.data(), front_.dtype,    front_.height,
            front_.width,        front_.channels, front_.width * front_.channels};
  }

  // Returns uninitialized memory for a new image of this size; turn() replaces the current image by it.
  template <class T>
  T* blank(std::int64_t height, std::int64_t width, std::int64_t channels) {
    back_.height = height;
    back_.width = width;
    back_.channels = channels;
    back_.dtype = std::is_same_v<T, std::uint8_t> ? DType::uint8 : DType::float32;
    const auto bytes = static_cast<std::size_t>(height * width * channels) * sizeof(T);
    if (back_.bytes.size() < bytes) back_.bytes.resize(bytes);
    return reinterpret_cast<T*>(back_.bytes.data());
  }
  // Returns memory for a new image of the current size.
  template <class T>
  T* blank() {
    return blank<T>(front_.height, front_.width, front_.channels);
  }
  void turn() { std::swap(front_, back_); }

 private:
  struct Picture {
    std::vector<std::byte> bytes;
    DType dtype = DType::uint8;
    std::int64_t height = 0, width = 0, channels = 0;
  };
  Picture front_, back_;
};

// Calls function(pixels) with a pointer of the pixels' type.
template <class Function>
void visit(Canvas& canvas, Function function) {
  if (canvas.dtype() == DType::uint8) {
    function(canvas.pixels<std::uint8_t>());
  } else {
    function(canvas.pixels<float>());
  }
}

// Converts a value to the type of pixels: for bytes, to the nearest whole number from 0 to 255 (0 for NaN).
template <class T>
T as_pixel(float value) {
  return value;
}
template <>
inline std::uint8_t as_pixel(float value) {
  return static_cast<std::uint8_t>((value > 0 ? value < 255 ? value : 255 : 0) + 0.5f);
}

// Interpolates from a (share 0) to b (share 1).
inline float mix(float a, float b, float share) { return a + share * (b - a); }

// The height and the width of an image in pixels.
struct ImageSize {
  std::int64_t height = 0, width = 0;
};

// An augmentation, which is applied in training only. It changes stored values (before `rescale` and `normalize`), and
// keeps the image's shape and type. Any thread may apply it at any time.
class Augmentation {
 public:
  virtual ~Augmentation() = default;

  // Whether bytes can stay bytes: false if the augmentation writes values that are not whole numbers from 0 to 255.
  virtual bool keeps_bytes() const { return true; }
  virtual void apply(Canvas& canvas, Draws draws) const = 0;
  // Returns the augmentation for the masks of the images (bytes with class numbers). With the same random numbers it
  // moves the same pixels without changing their values, and writes `outside` to pixels outside of the image. Null:
  // this augmentation moves no pixels.
  virtual std::shared_ptr<const Augmentation> of_masks(std::uint8_t /*outside*/) const { return nullptr; }
  // Returns the augmentation for targets that are images. With the same random numbers it moves the pixels of the
  // target like those of the image, by the same share of its sides, and changes values only by interpolation.
  // `images` is the size of the images at this step. Null: this augmentation moves no pixels.
  virtual std::shared_ptr<const Augmentation> of_targets(ImageSize /*images*/) const { return nullptr; }
};

}  // namespace trainctl
