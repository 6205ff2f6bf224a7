// Writes JPEG files for tests with libjpeg's compressor.
#pragma once

#include <cstdio>

#include <jpeglib.h>

#include "test/support/files.h"

namespace trainctl::test {

// 1 channel is gray, 3 are RGB, 4 are CMYK. CMYK is stored in `color_space`, with or without Adobe's marker,
// and its values are stored as given.
inline std::string jpeg(std::uint32_t height, std::uint32_t width, int channels, const std::string& pixels,
                        J_COLOR_SPACE color_space = JCS_CMYK, bool adobe = true) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &buffer, &size);
  info.image_height = height;
  info.image_width = width;
  info.input_components = channels;
  info.in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&info);
  if (channels == 4) {
    jpeg_set_colorspace(&info, color_space);
    info.write_Adobe_marker = adobe;
  }
  jpeg_set_quality(&info, 100, TRUE);
  for (int c = 0; c < info.num_components; ++c) info.comp_info[c].h_samp_factor = info.comp_info[c].v_samp_factor = 1;
  jpeg_start_compress(&info, TRUE);
  for (std::uint32_t y = 0; y < height; ++y) {
    JSAMPROW row =
        reinterpret_cast<JSAMPROW>(const_cast<char*>(pixels.data()) + y * width * static_cast<unsigned>(channels));
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  const std::string bytes(reinterpret_cast<char*>(buffer), size);
  jpeg_destroy_compress(&info);
  std::free(buffer);
  return bytes;
}

// Pixels with a gentle slope, which JPEG preserves almost exactly.
inline std::string slope(std::size_t height, std::size_t width, std::size_t channels) {
  std::string pixels;
  for (std::size_t y = 0; y < height; ++y) {
    for (std::size_t x = 0; x < width; ++x) {
      for (std::size_t c = 0; c < channels; ++c) pixels += static_cast<char>(40 + 5 * y + 3 * x + 20 * c);
    }
  }
  return pixels;
}

}  // namespace trainctl::test
