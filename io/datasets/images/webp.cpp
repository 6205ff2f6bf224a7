// Decodes WebP with libwebp.
#include <webp/decode.h>
#include <webp/demux.h>

#include <memory>

#include "core/base/format.h"
#include "io/datasets/dataset.h"
#include "io/datasets/images/image_codec.h"

namespace trainctl {
namespace {

[[noreturn]] void refuse_webp(const std::string& path) {
  data_error(path, "cannot be decoded as WebP: it is damaged or truncated");
}

struct DeleteAnimation {
  void operator()(WebPAnimDecoder* decoder) const { WebPAnimDecoderDelete(decoder); }
};

// Decodes the first frame of an animation, without its transparency.
void decode_animation(const WebPData& data, const std::string& path, Sample& sample) {
  WebPAnimDecoderOptions options;
  if (!WebPAnimDecoderOptionsInit(&options)) refuse_webp(path);
  options.color_mode = MODE_RGBA;
  const std::unique_ptr<WebPAnimDecoder, DeleteAnimation> decoder(WebPAnimDecoderNew(&data, &options));
  std::uint8_t* picture = nullptr;
  int time = 0;
  if (!decoder || !WebPAnimDecoderGetNext(decoder.get(), &picture, &time)) refuse_webp(path);
  const std::int64_t pixels = sample.shape[0] * sample.shape[1];
  for (std::int64_t i = 0; i < pixels; ++i) {
    for (int c = 0; c < 3; ++c) sample.buffer[static_cast<std::size_t>(i * 3 + c)] = std::byte{picture[i * 4 + c]};
  }
}

// An image of one colour may have any size in a few bytes. Such files are read up to a size that needs little memory;
// larger images must have at least a byte for each 128 Ki pixels, as lossy images of one colour have.
void check_memory(const WebPBitstreamFeatures& features, std::int64_t bytes, const std::string& path) {
  constexpr std::int64_t small = 1 << 24, pixels_per_byte = 1 << 17;
  check_image_size(features.height, features.width, path);
  if (std::int64_t{features.height} * features.width <= small + bytes * pixels_per_byte) return;
  data_error(path, format("has a size of {}x{} in a file of {} bytes, which is not supported", features.height,
                          features.width, bytes));
}

}  // namespace

void decode_webp(const std::byte* file, std::int64_t bytes, const std::string& path, Sample& sample) {
  const WebPData data{reinterpret_cast<const std::uint8_t*>(file), static_cast<std::size_t>(bytes)};
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(data.bytes, data.size, &features) != VP8_STATUS_OK) refuse_webp(path);
  check_memory(features, bytes, path);
  sample.shape = sample.whole = {features.height, features.width, 3};
  sample.buffer.resize(static_cast<std::size_t>(sample.shape.count()));
  if (features.has_animation) {
    decode_animation(data, path, sample);
  } else {
    auto* to = reinterpret_cast<std::uint8_t*>(sample.buffer.data());
    if (!WebPDecodeRGBInto(data.bytes, data.size, to, sample.buffer.size(), features.width * 3)) refuse_webp(path);
  }
  sample.values = sample.buffer.data();
}

}  // namespace trainctl
