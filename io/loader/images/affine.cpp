// The loops are written so that the compiler vectorizes them. Products and sums are not contracted: the results are
// bitwise equal on every instruction set.
#include "io/loader/images/affine.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/table.h"
#include "io/loader/images/reverse.h"

namespace trainctl {
namespace {

template <class T>
void scale_uniform(const T* from, std::int64_t count, float scale, float offset, float* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i]) * scale + offset;
}

template <class T>
void scale_each(const T* from, std::int64_t count, const float* scale, const float* offset, float* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i]) * scale[i] + offset[i];
}

// Calls map(row, values, to) for pieces of the reversed row, which are copied to a buffer, or for single pixels if the
// buffer holds only one.
template <class T, class Map>
void reversed(const T* last, std::int64_t pixels, std::int64_t channels, float* to, Map map) {
  constexpr std::int64_t buffer_values = 4096;
  std::array<T, buffer_values> row;
  const std::int64_t piece = buffer_values / channels;
  if (piece < 2) {
    for (; pixels > 0; --pixels, last -= channels, to += channels) map(last, channels, to);
  }
  for (std::int64_t count = 0; pixels > 0; pixels -= count, last -= count * channels, to += count * channels) {
    count = std::min(pixels, piece);
    reverse_pixels(last, count, channels, row.data());
    map(row.data(), count * channels, to);
  }
}

}  // namespace

void Affine::then(const std::vector<double>& next_scale, const std::vector<double>& next_offset) {
  const std::size_t channels = std::max({scale.size(), next_scale.size(), next_offset.size()});
  for (const std::size_t size : {scale.size(), next_scale.size(), next_offset.size()}) {
    if (size != 1 && size != channels) {
      throw Error(ErrorKind::config, format("`transform` normalizes the same samples with {} and with {}", size,
                                            counted(channels, "channel")));
    }
  }
  const auto at = [](const std::vector<double>& list, std::size_t i) { return list[list.size() == 1 ? 0 : i]; };
  Affine both{std::vector<double>(channels), std::vector<double>(channels)};
  for (std::size_t i = 0; i < channels; ++i) {
    both.scale[i] = at(scale, i) * at(next_scale, i);
    both.offset[i] = at(offset, i) * at(next_scale, i) + at(next_offset, i);
  }
  *this = std::move(both);
}

std::vector<double> Affine::stored(double y) const {
  std::vector<double> values;
  for (std::size_t i = 0; i < scale.size(); ++i) values.push_back(scale[i] == 0 ? 0 : (y - offset[i]) / scale[i]);
  return values;
}

void check_channels(const Affine& affine, std::int64_t channels) {
  if (affine.uniform() || static_cast<std::int64_t>(affine.scale.size()) == channels) return;
  throw Error(
      ErrorKind::config,
      format("`transform` normalizes {}, but the samples have {}", counted(affine.scale.size(), "channel"), channels),
      "set one value for each channel, or one for all");
}

AffineRow::AffineRow(const Affine& affine, std::int64_t channels, std::int64_t elements)
    : channels_(channels),
      uniform_(affine.uniform()),
      identity_(uniform_ && affine.scale[0] == 1 && affine.offset[0] == 0) {
  check_channels(affine, channels);
  const auto count = static_cast<std::size_t>(uniform_ ? 1 : elements);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t channel = uniform_ ? 0 : i % static_cast<std::size_t>(channels);
    scale_.push_back(static_cast<float>(affine.scale[channel]));
    offset_.push_back(static_cast<float>(affine.offset[channel]));
  }
}

void AffineRow::apply(const void* from, DType dtype, std::int64_t count, float* to) const {
  if (dtype == DType::uint8) {
    const auto* values = static_cast<const std::uint8_t*>(from);
    if (uniform_) return scale_uniform(values, count, scale_[0], offset_[0], to);
    return scale_each(values, count, scale_.data(), offset_.data(), to);
  }
  const auto* values = static_cast<const float*>(from);
  if (identity_) {
    std::copy_n(values, count, to);
  } else if (uniform_) {
    scale_uniform(values, count, scale_[0], offset_[0], to);
  } else {
    scale_each(values, count, scale_.data(), offset_.data(), to);
  }
}

void AffineRow::apply_reversed(const void* last, DType dtype, std::int64_t pixels, float* to) const {
  const auto map = [&](const void* row, std::int64_t count, float* values) { apply(row, dtype, count, values); };
  if (dtype == DType::uint8) {
    reversed(static_cast<const std::uint8_t*>(last), pixels, channels_, to, map);
  } else {
    reversed(static_cast<const float*>(last), pixels, channels_, to, map);
  }
}

}  // namespace trainctl
