// Decodes BMP: OS/2's and Windows' headers, palettes of up to 8 bits, 16, 24 and 32 bits a pixel, run lengths.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>

#include "core/base/format.h"
#include "io/datasets/dataset.h"
#include "io/datasets/images/image_codec.h"

namespace trainctl {
namespace {

// Reads the little-endian fields of a file and checks every access.
class BmpFields {
 public:
  BmpFields(const std::byte* file, std::int64_t bytes, const std::string& path)
      : file_(file), bytes_(bytes), path_(path) {}

  std::uint32_t at(std::int64_t offset, int count) const {
    std::uint32_t value = 0;
    const std::byte* from = here(offset, count);
    for (int i = 0; i < count; ++i) value |= std::to_integer<std::uint32_t>(from[i]) << 8 * i;
    return value;
  }
  const std::byte* here(std::int64_t offset, std::int64_t count) const {
    if (offset < 0 || offset > bytes_ - count) refuse("the file ends too early");
    return file_ + offset;
  }
  [[noreturn]] void refuse(const std::string& why) const { data_error(path_, "cannot be decoded as BMP: " + why); }

 private:
  const std::byte* file_;
  std::int64_t bytes_;
  const std::string& path_;
};

enum BmpCompression : std::uint32_t { plain = 0, runs_of_8 = 1, runs_of_4 = 2, bit_fields = 3, alpha_fields = 6 };

struct BmpHeader {
  std::int64_t height = 0, width = 0, pixels = 0;  // pixels: their offset in the file
  std::uint32_t bits = 0, compression = plain;
  bool from_top = false;
  std::array<std::uint32_t, 3> masks{};           // the bits of red, green and blue in pixels of 16 and 32 bits
  std::vector<std::array<std::byte, 3>> palette;  // red, green and blue
  bool has_runs() const { return compression == runs_of_8 || compression == runs_of_4; }
};

void read_palette(const BmpFields& file, std::int64_t at, std::uint32_t colors, int entry, BmpHeader& header) {
  const std::uint32_t max_colors = 1u << header.bits;
  for (std::uint32_t i = 0; i < std::min(colors == 0 ? max_colors : colors, max_colors); ++i) {
    const std::byte* color = file.here(at + std::int64_t{i} * entry, 3);
    header.palette.push_back({color[2], color[1], color[0]});
  }
  header.palette.resize(256);
}

void choose_masks(const BmpFields& file, BmpHeader& header) {
  constexpr std::int64_t masks_offset = 54;  // masks follow the first 40 bytes of a header of any length
  header.masks = {0xFF0000, 0xFF00, 0xFF};
  if (header.bits == 16) header.masks = {0x7C00, 0x3E0, 0x1F};
  if (header.compression != bit_fields && header.compression != alpha_fields) return;
  std::array<std::uint32_t, 3> stored{};
  for (std::size_t c = 0; c < 3; ++c) stored[c] = file.at(masks_offset + 4 * static_cast<std::int64_t>(c), 4);
  if (stored != std::array<std::uint32_t, 3>{}) header.masks = stored;
}

BmpHeader read_header(const BmpFields& file) {
  BmpHeader header;
  header.pixels = file.at(10, 4);
  const std::int64_t length = file.at(14, 4);
  const bool old = length == 12;  // the first header of OS/2
  if (!old && (length < 40 || length > 124)) file.refuse(format("its header has {} bytes", length));
  std::uint32_t colors = 0;
  if (old) {
    header.width = file.at(18, 2);
    header.height = file.at(20, 2);
    header.bits = file.at(24, 2);
  } else {
    header.width = static_cast<std::int32_t>(file.at(18, 4));
    header.height = static_cast<std::int32_t>(file.at(22, 4));
    header.bits = file.at(28, 2);
    header.compression = file.at(30, 4);
    colors = file.at(46, 4);
    header.from_top = header.height < 0;
    header.height = std::abs(header.height);
  }
  constexpr std::uint32_t depths[] = {1, 2, 4, 8, 16, 24, 32};
  if (std::find(std::begin(depths), std::end(depths), header.bits) == std::end(depths)) {
    file.refuse(format("it has {} bits a pixel", header.bits));
  }
  const bool masked = header.compression == bit_fields || header.compression == alpha_fields;
  const bool fits = header.compression == plain || (header.compression == runs_of_8 && header.bits == 8) ||
                    (header.compression == runs_of_4 && header.bits == 4) || (masked && header.bits >= 16);
  if (!fits) file.refuse(format("compression {} of {} bits a pixel", header.compression, header.bits));
  if (header.bits <= 8) {
    const std::int64_t begin = 14 + length;
    read_palette(file, begin, colors, old ? 3 : 4, header);
    // Some programs store the offset of the palette instead of the offset of the pixels.
    if (header.pixels == begin) header.pixels += std::int64_t{colors == 0 ? 1u << header.bits : colors} * (old ? 3 : 4);
  } else {
    choose_masks(file, header);
  }
  return header;
}

// Returns the bits of a pixel that a mask selects, scaled to 0 to 255.
std::byte channel_in(std::uint32_t pixel, std::uint32_t mask) {
  if (mask == 0) return std::byte{0};
  const int shift = std::countr_zero(mask);
  return static_cast<std::byte>(std::uint64_t{(pixel & mask) >> shift} * 255 / (mask >> shift));
}

// Converts a row of pixels that is stored without run lengths to RGB.
void read_row(const BmpHeader& header, const std::byte* from, std::byte* to) {
  const std::uint32_t bits = header.bits;
  for (std::int64_t x = 0; x < header.width; ++x, to += 3) {
    if (bits <= 8) {
      const std::int64_t bit = x * bits;
      const auto byte = std::to_integer<std::uint32_t>(from[bit / 8]);
      const std::uint32_t index = byte >> (8 - bits - static_cast<std::uint32_t>(bit % 8)) & ((1u << bits) - 1);
      std::copy_n(header.palette[index].begin(), 3, to);
      continue;
    }
    std::uint32_t pixel = 0;
    for (std::uint32_t i = 0; i < bits / 8; ++i) {
      pixel |= std::to_integer<std::uint32_t>(from[x * (bits / 8) + i]) << 8 * i;
    }
    for (std::size_t c = 0; c < 3; ++c) to[c] = channel_in(pixel, header.masks[c]);
  }
}

// Decodes an image that is stored in runs. Returns each pixel's index in the palette, row by row in the stored order;
// pixels that no run covers have index 0.
std::vector<std::uint8_t> read_runs(const BmpFields& file, const BmpHeader& header) {
  std::vector<std::uint8_t> indices(static_cast<std::size_t>(header.width * header.height));
  const bool nibbles = header.compression == runs_of_4;
  std::int64_t at = header.pixels, x = 0, y = 0;
  const auto put = [&](std::uint32_t index) {
    if (x < header.width && y < header.height) indices[static_cast<std::size_t>(y * header.width + x)] = index & 255;
    ++x;
  };
  const auto half = [](std::uint32_t byte, std::uint32_t i) { return i % 2 == 0 ? byte >> 4 : byte & 15; };
  while (y < header.height) {
    const std::uint32_t count = file.at(at, 1), value = file.at(at + 1, 1);
    at += 2;
    if (count > 0) {
      for (std::uint32_t i = 0; i < count; ++i) put(nibbles ? half(value, i) : value);
    } else if (value == 0) {  // the end of the row
      x = 0;
      ++y;
    } else if (value == 1) {  // the end of the image
      break;
    } else if (value == 2) {  // moves right and to a later row
      x += file.at(at, 1);
      y += file.at(at + 1, 1);
      at += 2;
    } else {  // single pixels, padded to an even number of bytes
      for (std::uint32_t i = 0; i < value; ++i) {
        put(nibbles ? half(file.at(at + i / 2, 1), i) : file.at(at + i, 1));
      }
      const std::int64_t bytes = nibbles ? (value + 1) / 2 : value;
      at += bytes + bytes % 2;
    }
  }
  return indices;
}

}  // namespace

void decode_bmp(const std::byte* bytes, std::int64_t count, const std::string& path, Sample& sample) {
  const BmpFields file(bytes, count, path);
  const BmpHeader header = read_header(file);
  check_image_size(header.height, header.width, path, count, 4096);  // runs hold fewer pixels per byte
  const std::int64_t bytes_of_row = (header.width * header.bits + 7) / 8, stride = (bytes_of_row + 3) / 4 * 4;
  if (!header.has_runs()) file.here(header.pixels, (header.height - 1) * stride + bytes_of_row);
  sample.shape = sample.whole = {header.height, header.width, 3};
  sample.buffer.resize(static_cast<std::size_t>(sample.shape.count()));
  const auto row = [&](std::int64_t stored) {
    return sample.buffer.data() + (header.from_top ? stored : header.height - 1 - stored) * header.width * 3;
  };
  if (header.has_runs()) {
    const std::vector<std::uint8_t> indices = read_runs(file, header);
    for (std::int64_t y = 0; y < header.height; ++y) {
      for (std::int64_t x = 0; x < header.width; ++x) {
        const std::uint8_t index = indices[static_cast<std::size_t>(y * header.width + x)];
        std::copy_n(header.palette[index].begin(), 3, row(y) + x * 3);
      }
    }
  } else {
    for (std::int64_t y = 0; y < header.height; ++y) {
      read_row(header, file.here(header.pixels + y * stride, bytes_of_row), row(y));
    }
  }
  sample.values = sample.buffer.data();
}

}  // namespace trainctl
