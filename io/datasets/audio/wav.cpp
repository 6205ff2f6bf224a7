// Reads WAV files: the chunks `fmt ` and `data` of a RIFF file.
#include "io/datasets/audio/wav.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string_view>
#include <type_traits>

#include "core/base/format.h"
#include "core/base/table.h"
#include "io/datasets/dataset.h"

namespace trainctl {
namespace {

constexpr const char* convert = "convert it: ffmpeg -i IN -c:a pcm_s16le OUT.wav";
constexpr const char* repair = "repair or remove the file";
constexpr std::int64_t riff_bytes = 12, chunk_bytes = 8;  // of the headers
constexpr std::int64_t plain_format_bytes = 16, extended_format_bytes = 40;

// The encodings of the field `format tag`; extensible: the encoding is in the extension.
constexpr unsigned pcm = 1, ieee_float = 3, extensible = 0xfffe;

std::int64_t little_endian(const unsigned char* bytes, int count) {
  std::int64_t value = 0;
  for (int i = count; i-- > 0;) value = value << 8 | bytes[i];
  return value;
}

// Reads the chunk `fmt `, whose content begins at `offset`.
void read_encoding(const InputFile& file, std::int64_t offset, std::int64_t bytes, WavFormat& wav) {
  unsigned char fields[extended_format_bytes] = {};
  if (bytes < plain_format_bytes) {
    data_error(file.path(), format("its chunk 'fmt ' has {} bytes, not at least {}", bytes, plain_format_bytes),
               repair);
  }
  file.read(offset, fields, std::min(bytes, extended_format_bytes));
  auto tag = static_cast<unsigned>(little_endian(fields, 2));
  if (tag == extensible && bytes >= extended_format_bytes) tag = static_cast<unsigned>(little_endian(fields + 24, 2));
  wav.channels = little_endian(fields + 2, 2);
  wav.sampling_rate = little_endian(fields + 4, 4);
  const std::int64_t block = little_endian(fields + 12, 2), bits = little_endian(fields + 14, 2);
  wav.is_float = tag == ieee_float;
  wav.value_bytes = bits / 8;
  const bool whole = tag == pcm && (bits == 8 || bits == 16 || bits == 24 || bits == 32);
  if (!whole && !(wav.is_float && (bits == 32 || bits == 64))) {
    data_error(file.path(),
               format("holds sound in the WAV encoding {} with {} bits, but only PCM of 8, 16, "
                      "24 and 32 bits and float of 32 and 64 bits are read",
                      tag, bits),
               convert);
  }
  if (wav.channels < 1 || wav.channels > largest_channels) {
    data_error(
        file.path(),
        format("its header states {} channels, which is not a number from 1 to {}", wav.channels, largest_channels),
        repair);
  }
  if (wav.sampling_rate < 1 || wav.sampling_rate > largest_sampling_rate) {
    data_error(file.path(),
               format("its header states {} samples per second, which is not a number from 1 to {}", wav.sampling_rate,
                      largest_sampling_rate),
               repair);
  }
  if (block != wav.channels * wav.value_bytes) {
    data_error(file.path(),
               format("its header states blocks of {}, but {} of {} bits need {}", counted(block, "byte"),
                      counted(wav.channels, "channel"), bits, wav.channels * wav.value_bytes),
               repair);
  }
}

template <class T, int bytes = sizeof(T)>
void widen(const std::byte* from, std::int64_t count, float* to) {
  for (std::int64_t i = 0; i < count; ++i) {
    T value{};
    std::memcpy(reinterpret_cast<std::byte*>(&value) + (sizeof(T) - bytes), from + i * bytes, bytes);
    if constexpr (std::is_floating_point_v<T>) {
      to[i] = static_cast<float>(value);
    } else if constexpr (sizeof(T) == 1) {
      to[i] = (static_cast<float>(value) - 128) / 128;
    } else {
      // A value of fewer bytes than T is in the upper bytes of T.
      to[i] = static_cast<float>(value) / -static_cast<float>(std::numeric_limits<T>::min());
    }
  }
}

// The size that a program writes if it writes to a pipe and does not know the size: the sound ends with the file.
constexpr std::int64_t unknown_bytes = 0xFFFFFFFF;

}  // namespace

WavFormat read_wav_format(const InputFile& file) {
  unsigned char header[riff_bytes] = {};
  const std::int64_t read = file.read_some(0, header, riff_bytes);
  const std::string_view text(reinterpret_cast<const char*>(header), riff_bytes);
  if (read < riff_bytes || text.substr(0, 4) != "RIFF" || text.substr(8) != "WAVE") {
    data_error(file.path(), "is not a WAV file: it does not begin with RIFF and WAVE", convert);
  }
  WavFormat wav;
  for (std::int64_t at = riff_bytes;;) {
    if (at + chunk_bytes > file.size()) {
      data_error(file.path(), wav.channels == 0 ? "has no chunk 'fmt '" : "has no chunk 'data'", repair);
    }
    unsigned char chunk[chunk_bytes];
    file.read(at, chunk, chunk_bytes);
    const std::string_view id(reinterpret_cast<const char*>(chunk), 4);
    const std::int64_t left = file.size() - at - chunk_bytes;
    std::int64_t bytes = little_endian(chunk + 4, 4);
    if (id == "data" && bytes == unknown_bytes && wav.channels > 0) {
      bytes = left - left % (std::int64_t{wav.channels} * wav.value_bytes);
    }
    if (bytes > left) {
      data_error(file.path(),
                 format("its header states {} bytes from byte {} on, but the file has only {} more", bytes,
                        at + chunk_bytes, left),
                 "the file is cut off: copy it again, or remove it");
    }
    if (id == "fmt ") read_encoding(file, at + chunk_bytes, bytes, wav);
    if (id == "data") {
      if (wav.channels == 0) data_error(file.path(), "has no chunk 'fmt ' before its chunk 'data'", repair);
      const std::int64_t block = wav.channels * wav.value_bytes;
      if (bytes == 0 || bytes % block != 0) {
        data_error(file.path(),
                   format("its header states {} bytes of sound, which is not a multiple of {} above 0", bytes, block),
                   repair);
      }
      wav.begin = at + chunk_bytes;
      wav.length = bytes / block;
      return wav;
    }
    at += chunk_bytes + bytes + bytes % 2;  // chunks begin at even offsets
  }
}

void read_wav_values(const InputFile& file, const WavFormat& wav, std::int64_t length, std::vector<std::byte>& scratch,
                     float* to) {
  const std::int64_t count = length * wav.channels, bytes = count * wav.value_bytes;
  scratch.resize(static_cast<std::size_t>(bytes));
  file.read(wav.begin, scratch.data(), bytes);
  const std::byte* from = scratch.data();
  if (wav.is_float) return wav.value_bytes == 4 ? widen<float>(from, count, to) : widen<double>(from, count, to);
  switch (wav.value_bytes) {
    case 1:
      return widen<std::uint8_t>(from, count, to);
    case 2:
      return widen<std::int16_t>(from, count, to);
    case 3:
      return widen<std::int32_t, 3>(from, count, to);
    default:
      return widen<std::int32_t>(from, count, to);
  }
}

}  // namespace trainctl
