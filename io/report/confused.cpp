// Pictures as addresses that hold all of their bytes, in the format that needs no library: BMP.
#include "io/report/confused.h"

#include <algorithm>
#include <cmath>

#include "core/base/format.h"
#include "core/base/table.h"
#include "io/report/html.h"

namespace trainctl {
namespace {

constexpr std::int64_t most_side = 96;

// RFC 4648.
std::string base64(const std::string& bytes) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t three = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      three = three << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      text += i + k <= bytes.size() ? digits[three >> (18 - 6 * k) & 63] : '=';
    }
  }
  return text;
}

void put(std::string& bytes, std::uint32_t value, int count) {
  for (int i = 0; i < count; ++i) bytes += static_cast<char>(value >> (8 * i) & 255);
}

// A BMP of 24 bits a pixel, whose rows go upwards and are filled up to a multiple of four bytes.
std::string bitmap(const ConfusedSample& sample) {
  const std::int64_t height = sample.shape[0], width = sample.shape[1], channels = sample.shape[2];
  const std::int64_t step = std::max<std::int64_t>(1, (std::max(height, width) + most_side - 1) / most_side);
  const std::int64_t rows = height / step, columns = width / step;
  const auto [low, high] = std::minmax_element(sample.pixels.begin(), sample.pixels.end());
  const float spread = *high > *low ? 255 / (*high - *low) : 0;
  // The mean of the pixels that one of the picture stands for.
  const auto value = [&, least = *low](std::int64_t row, std::int64_t column, std::int64_t channel) {
    float sum = 0;
    for (std::int64_t y = row * step; y < (row + 1) * step; ++y) {
      for (std::int64_t x = column * step; x < (column + 1) * step; ++x) {
        sum += sample.pixels[static_cast<std::size_t>((y * width + x) * channels + channel)];
      }
    }
    return static_cast<std::uint32_t>(std::lround((sum / static_cast<float>(step * step) - least) * spread));
  };
  std::string image;
  for (std::int64_t row = rows - 1; row >= 0; --row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      for (const std::int64_t channel : {2, 1, 0}) put(image, value(row, column, channels == 3 ? channel : 0), 1);
    }
    while (image.size() % 4 != 0) image += '\0';
  }
  constexpr std::uint32_t head = 14 + 40;
  std::string file = "BM";
  put(file, head + static_cast<std::uint32_t>(image.size()), 4);
  put(file, 0, 4);
  put(file, head, 4);
  put(file, 40, 4);
  put(file, static_cast<std::uint32_t>(columns), 4);
  put(file, static_cast<std::uint32_t>(rows), 4);
  put(file, 1, 2);
  put(file, 24, 2);
  file.append(24, '\0');
  return file + image;
}

std::string name_of(int number, const std::vector<std::string>& names) {
  const auto index = static_cast<std::size_t>(number);
  return index < names.size() ? names[index] : std::to_string(number);
}

}  // namespace

std::string confused_cards(const std::vector<ConfusedSample>& samples, const std::vector<std::string>& names) {
  std::string cards;
  for (const ConfusedSample& sample : samples) {
    const std::string actual = html::escaped(name_of(sample.actual, names));
    std::string picture;
    if (!sample.pixels.empty()) {
      picture = format("<img alt=\"{}\" src=\"data:image/bmp;base64,{}\">", actual, base64(bitmap(sample)));
    }
    cards += format(
        "<div class=\"card sample\">{}<b>{}</b> taken for <b>{}</b><span class=\"soft\">{:.1f} % sure, sample "
        "{}</span></div>\n",
        picture, actual, html::escaped(name_of(sample.taken_for, names)), 100 * sample.probability,
        grouped(sample.number));
  }
  return cards.empty() ? "" : "<div class=\"tiles\">\n" + cards + "</div>\n";
}

}  // namespace trainctl
