// Computes mel spectrograms: frames under a window, their powers by frequency, and sums of these over mel bins.
#include "io/loader/signals/mel_spectrogram.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/base/format.h"

namespace trainctl {
namespace {

double mel_of(double hertz) { return 1127 * std::log1p(hertz / 700); }

// A periodic window of `length` values at the middle of `frame` values; without a window, all values are 1.
std::vector<double> centred_window(SignalWindow kind, std::int64_t length, std::int64_t frame) {
  if (kind == SignalWindow::none) length = frame;
  const std::vector<double> window = signal_window(kind, length, true);
  std::vector<double> values(static_cast<std::size_t>(frame));
  std::copy(window.begin(), window.end(), values.begin() + (frame - length) / 2);
  return values;
}

// The index of the value at `index` of sound of `length` values that is mirrored at both ends without repeating them.
std::int64_t mirrored(std::int64_t index, std::int64_t length) {
  if (length == 1) return 0;
  const std::int64_t period = 2 * (length - 1);
  index %= period;
  if (index < 0) index += period;
  return index < length ? index : period - index;
}

}  // namespace

// The memory of one call of apply().
struct MelSpectrogram::Memory {
  std::vector<std::complex<double>> frame, spectrum;
  std::vector<double> powers[2];
};

MelSpectrogram::MelSpectrogram(const MelSettings& settings)
    : settings_(settings),
      transform_(settings.fft_length),
      window_(centred_window(settings.window, settings.sequence_length, settings.fft_length)) {
  const std::int64_t frequencies = settings_.fft_length / 2 + 1;
  const double first = mel_of(settings_.min_freq), last = mel_of(settings_.max_freq);
  const double step = (last - first) / static_cast<double>(settings_.num_mel_bins + 1);
  for (std::int64_t b = 0; b < settings_.num_mel_bins; ++b) {
    const double centre = first + static_cast<double>(b + 1) * step;
    Bin bin;
    for (std::int64_t k = 1; k < frequencies; ++k) {  // the frequency 0 is in no bin
      const double hertz = static_cast<double>(settings_.sampling_rate) / 2 * static_cast<double>(k) /
                           static_cast<double>(frequencies - 1);
      const double weight = 1 - std::abs(mel_of(hertz) - centre) / step;
      if (weight <= 0) continue;
      if (bin.weights.empty()) bin.first = k;
      bin.weights.push_back(weight);
    }
    bins_.push_back(std::move(bin));
  }
}

std::optional<Shape> MelSpectrogram::shape_of(const Shape& sound) const {
  if (sound.rank() != 1 && sound.rank() != 2) return std::nullopt;
  const std::int64_t padded = sound[0] + 2 * (settings_.fft_length / 2);
  if (sound.count() == 0 || padded < settings_.fft_length) return std::nullopt;
  const std::int64_t frames = (padded - settings_.fft_length) / settings_.sequence_stride + 1;
  return Shape{settings_.num_mel_bins, frames, sound.rank() == 2 ? sound[1] : 1};
}

// Both frames are transformed at once, as the real and the imaginary part of one sequence.
void MelSpectrogram::transform_frames(const float* x, std::int64_t length, std::int64_t channels, std::int64_t frame,
                                      Memory& memory) const {
  const std::int64_t size = settings_.fft_length, stride = settings_.sequence_stride;
  const std::int64_t begin = frame * stride - size / 2;
  for (std::int64_t i = 0; i < size; ++i) {
    const auto value = [&](std::int64_t at) {
      return double{x[(at >= 0 && at < length ? at : mirrored(at, length)) * channels]};
    };
    memory.frame[static_cast<std::size_t>(i)] =
        window_[static_cast<std::size_t>(i)] * std::complex(value(begin + i), value(begin + i + stride));
  }
  transform_.apply(memory.frame.data(), memory.spectrum.data());
  for (std::size_t k = 0; k < memory.powers[0].size(); ++k) {
    const std::complex<double> z = memory.spectrum[k],
                               mirror =
                                   std::conj(memory.spectrum[(memory.spectrum.size() - k) % memory.spectrum.size()]);
    const double squares[] = {std::norm(z + mirror) / 4, std::norm(z - mirror) / 4};
    for (int f = 0; f < 2; ++f) {
      memory.powers[f][k] = settings_.mag_exp == 2 ? squares[f] : std::pow(squares[f], settings_.mag_exp / 2);
    }
  }
}

void MelSpectrogram::to_decibels(std::vector<float>& powers) const {
  const double reference = 10 * std::log10(std::max(std::abs(settings_.ref_power), settings_.min_power));
  float largest = -std::numeric_limits<float>::infinity();
  for (float& power : powers) {
    power = static_cast<float>(10 * std::log10(std::max(double{power}, settings_.min_power)) - reference);
    largest = std::max(largest, power);
  }
  const float least = largest - static_cast<float>(settings_.top_db);
  for (float& power : powers) power = std::max(power, least);
}

void MelSpectrogram::apply(const float* x, const Shape& sound, std::vector<float>& spectrogram) const {
  const Shape shape = *shape_of(sound);
  const std::int64_t frames = shape[1], channels = shape[2];
  spectrogram.resize(static_cast<std::size_t>(shape.count()));
  thread_local Memory memory;
  memory.frame.resize(static_cast<std::size_t>(settings_.fft_length));
  memory.spectrum.resize(memory.frame.size());
  for (std::vector<double>& powers : memory.powers) powers.resize(memory.frame.size() / 2 + 1);
  for (std::int64_t c = 0; c < channels; ++c) {
    for (std::int64_t frame = 0; frame < frames; frame += 2) {
      transform_frames(x + c, sound[0], channels, frame, memory);
      for (std::int64_t b = 0; b < shape[0]; ++b) {
        const Bin& bin = bins_[static_cast<std::size_t>(b)];
        for (std::int64_t f = 0; f < std::min<std::int64_t>(2, frames - frame); ++f) {
          double sum = 0;
          for (std::size_t k = 0; k < bin.weights.size(); ++k) {
            sum += bin.weights[k] * memory.powers[f][static_cast<std::size_t>(bin.first) + k];
          }
          spectrogram[static_cast<std::size_t>((b * frames + frame + f) * channels + c)] = static_cast<float>(sum);
        }
      }
    }
  }
  if (settings_.power_to_db) to_decibels(spectrogram);
}

std::string MelSpectrogram::text() const {
  const MelSettings& s = settings_;
  return format("mel {} {} {} {} {} {} {} {} {} {} {} {} {}", s.fft_length, s.sequence_stride, s.sequence_length,
                static_cast<int>(s.window), s.sampling_rate, s.num_mel_bins, s.min_freq, s.max_freq, s.power_to_db,
                s.top_db, s.mag_exp, s.min_power, s.ref_power);
}

}  // namespace trainctl
