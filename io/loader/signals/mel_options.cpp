// The transform mel_spectrogram, with the options of Keras' layer MelSpectrogram.
#include "core/base/format.h"
#include "io/loader/images/transform_options.h"
#include "io/loader/signals/mel_spectrogram.h"

namespace trainctl {

namespace {

constexpr std::int64_t default_sampling_rate = 16000;

struct MelSpectrogramOptions final : TransformOptions {
  std::int64_t fft_length = 2048, sequence_stride = 512, num_mel_bins = 128;
  SignalWindow window = SignalWindow::hann;
  double min_freq = 20, top_db = 80, mag_exp = 2, min_power = 1e-10, ref_power = 1;
  bool power_to_db = true;
  Auto<std::int64_t> sequence_length, sampling_rate;
  Auto<double> max_freq;

  void add(const SourceLocation& location, TransformPlan& plan, StatisticsSource&) const override {
    const Affine& affine = plan.affine;
    if (!plan.fixed.empty() || affine.scale != std::vector{1.0} || affine.offset != std::vector{0.0}) {
      throw Error(ErrorKind::config, location, "mel_spectrogram must be the first step of `transform`");
    }
    const std::int64_t known = plan.sampling_rate;
    if (known > 0 && sampling_rate.or_else(known) != known) {
      throw Error(ErrorKind::config, location,
                  format("the samples have {} values per second, and mel_spectrogram has the sampling_rate {}", known,
                         *sampling_rate.given),
                  "leave out the latter, or set the `sampling_rate` of the data set");
    }
    const std::int64_t rate = sampling_rate.or_else(known > 0 ? known : default_sampling_rate);
    const double highest = max_freq.or_else(static_cast<double>(rate / 2));
    if (highest <= min_freq) {
      throw Error(ErrorKind::config, location,
                  format("mel_spectrogram has the min_freq {}, which is not below its max_freq {}", min_freq, highest));
    }
    const MelSettings mel{fft_length,
                          sequence_stride,
                          sequence_length.or_else(fft_length),
                          window,
                          rate,
                          num_mel_bins,
                          min_freq,
                          highest,
                          power_to_db,
                          top_db,
                          mag_exp,
                          min_power,
                          ref_power};
    GeometryStep step{GeometryStep::Kind::spectrogram, 0, 0, 0, location};
    step.spectrogram = std::make_shared<const MelSpectrogram>(mel);
    plan.fixed.push_back(std::move(step));
  }
};

void check_frames(const MelSpectrogramOptions& options, const Node& node, Reader& reader) {
  const std::int64_t length = options.sequence_length.or_else(options.fft_length);
  if (length > options.fft_length) {
    reader.error(node.location, format("sequence_length {} exceeds fft_length {}", length, options.fft_length));
  }
}

}  // namespace

Section mel_spectrogram_section() {
  using O = MelSpectrogramOptions;
  return Keys<O>(
             "mel_spectrogram",
             "Replaces sound (values) or (values, channels) by its mel spectrogram, an image (num_mel_bins, frames, "
             "channels), with the options of Keras' layer MelSpectrogram. It must be the first step. The largest value "
             "from which `top_db` counts is that of the sample.")
      .key("fft_length", &O::fft_length, "Values of a frame.", between(2, 1 << 20))
      .key("sequence_stride", &O::sequence_stride, "Values from one frame to the next.", between(1, 1 << 30))
      .key("sequence_length", &O::sequence_length, "Values under the window; auto: fft_length.", at_least(1))
      .key("window", &O::window,
           "The window by which frames are multiplied; none: all values of a frame count, whatever sequence_length is.")
      .key("sampling_rate", &O::sampling_rate,
           "Values per second; auto: the rate of the data set audio_classification, and 16000 for arrays.", at_least(1))
      .key("num_mel_bins", &O::num_mel_bins, "Number of mel bins.", between(1, 65536))
      .key("min_freq", &O::min_freq, "The lowest frequency, in Hz.", at_least(0))
      .key("max_freq", &O::max_freq, "The highest frequency, in Hz; auto: half the sampling rate.", more_than(0))
      .key("power_to_db", &O::power_to_db, "Whether powers are converted to decibels.")
      .key("top_db", &O::top_db,
           "Decibels between the largest value and the least one, to which lower values are raised.", at_least(0))
      .key("mag_exp", &O::mag_exp, "Exponent of magnitudes: 1 for magnitudes, 2 for powers.", more_than(0))
      .key("min_power", &O::min_power, "The least power that is converted to decibels.", more_than(0))
      .key("ref_power", &O::ref_power, "The power that is 0 dB.")
      .check(check_frames);
}

}  // namespace trainctl
