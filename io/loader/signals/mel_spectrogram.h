// Mel spectrograms of sound, as Keras' layer MelSpectrogram computes them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/layers/signal_window.h"
#include "core/tensor/shape.h"
#include "io/loader/signals/fourier.h"

namespace trainctl {

struct MelSettings {
  std::int64_t fft_length;       // values of a frame
  std::int64_t sequence_stride;  // values from one frame to the next
  std::int64_t sequence_length;  // values under the window, at the middle of a frame; at most fft_length
  SignalWindow window;
  std::int64_t sampling_rate;  // values per second
  std::int64_t num_mel_bins;
  double min_freq, max_freq;  // Hz
  bool power_to_db;
  double top_db;
  double mag_exp;  // exponent of the magnitudes
  double min_power, ref_power;
};

class MelSpectrogram {
 public:
  explicit MelSpectrogram(const MelSettings& settings);

  // The shape [num_mel_bins, frames, channels] of the spectrogram of sound of shape [values, channels] or [values]; no
  // value for other shapes. A frame begins at every multiple of the stride of the sound, which is mirrored at both ends
  // by half a frame.
  std::optional<Shape> shape_of(const Shape& sound) const;
  // Replaces `spectrogram` by the spectrogram of x, which has the shape `sound`. With power_to_db, values are at least
  // the largest one of the sample minus top_db.
  void apply(const float* x, const Shape& sound, std::vector<float>& spectrogram) const;
  // All settings as text, for keys of caches.
  std::string text() const;

 private:
  // The weights of the frequencies [first, first + weights.size()) in a mel bin.
  struct Bin {
    std::int64_t first = 0;
    std::vector<double> weights;
  };
  struct Memory;

  // Writes the powers of the frequencies of the frames number `frame` and `frame` + 1 to memory.powers.
  void transform_frames(const float* x, std::int64_t length, std::int64_t channels, std::int64_t frame,
                        Memory& memory) const;
  void to_decibels(std::vector<float>& powers) const;

  MelSettings settings_;
  FourierTransform transform_;
  std::vector<double> window_;  // [fft_length]
  std::vector<Bin> bins_;
};

}  // namespace trainctl
