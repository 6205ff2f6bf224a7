// Writes HTML cards of samples, with pictures as data URLs.
#include "io/report/confused.h"

#include "core/base/format.h"
#include "core/base/table.h"
#include "io/pictures/picture.h"
#include "io/report/html.h"

namespace trainctl {
namespace {

// Encodes bytes as in RFC 4648.
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
      picture = format("<img alt=\"{}\" src=\"data:image/png;base64,{}\">", actual,
                       base64(png_file(picture_of(sample.pixels, sample.shape))));
    }
    cards += format(
        "<div class=\"card sample\">{}<b>{}</b> taken for <b>{}</b><span class=\"soft\">{:.1f} % sure; "
        "{}</span></div>\n",
        picture, actual, html::escaped(name_of(sample.taken_for, names)), 100 * sample.probability,
        html::escaped(sample.name));
  }
  return cards.empty() ? "" : "<div class=\"tiles\">\n" + cards + "</div>\n";
}

}  // namespace trainctl
