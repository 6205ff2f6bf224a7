// Reads WAV files: PCM of 8, 16, 24 and 32 bits, and floating-point numbers of 32 and 64 bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/files.h"

namespace trainctl {

// The largest sampling rate that is read, and the largest number of channels.
inline constexpr std::int64_t largest_sampling_rate = 1'000'000;
inline constexpr std::int64_t largest_channels = 256;

// What the header of a WAV file states.
struct WavFormat {
  std::int64_t channels = 0;
  std::int64_t sampling_rate = 0;  // values of a channel in a second
  std::int64_t value_bytes = 0;    // of one value of one channel
  bool is_float = false;           // else whole numbers: unsigned if they have one byte, otherwise signed
  std::int64_t begin = 0;          // offset of the values in the file, in bytes
  std::int64_t length = 0;         // values of a channel
};

// Reads the header. Throws Error{data} with the file and what is wrong: another format, an encoding that is not
// supported, or sizes that do not agree with each other or with the size of the file.
WavFormat read_wav_format(const InputFile& file);

// Writes the first `length` values of all channels to `to` [length, channels], which are at most those of the file.
// Whole numbers are scaled to [-1, 1), as by tf.audio.decode_wav. `scratch` is memory for the stored values.
void read_wav_values(const InputFile& file, const WavFormat& wav, std::int64_t length, std::vector<std::byte>& scratch,
                     float* to);

}  // namespace trainctl
