// stft_spectrogram: real_kernel and imag_kernel (frame_length, 1, frequencies), the cosines and sines of a Fourier
// transform under a window; computed as convolutions over images that have a row for each channel.
#include <cmath>
#include <functional>
#include <numbers>
#include <optional>

#include "core/base/format.h"
#include "core/graph/ops/images/convolution.h"
#include "core/graph/ops/reshaping/permute.h"
#include "core/graph/ops/reshaping/shaping.h"
#include "core/layers/expression/layer_expression.h"
#include "core/layers/images.h"
#include "core/layers/signal_window.h"
#include "core/layers/table.h"
#include "core/layers/window.h"

namespace trainctl {

enum class SpectrogramMode { log, magnitude, psd, real, imag, angle, stft };
// How the window is scaled: the sum of its squares is 1, or the sum of its values.
enum class WindowScaling { density, spectrum, none };

template <>
struct EnumNames<SpectrogramMode> {
  static constexpr EnumName<SpectrogramMode> names[] = {
      {SpectrogramMode::log, "log"},   {SpectrogramMode::magnitude, "magnitude"}, {SpectrogramMode::psd, "psd"},
      {SpectrogramMode::real, "real"}, {SpectrogramMode::imag, "imag"},           {SpectrogramMode::angle, "angle"},
      {SpectrogramMode::stft, "stft"}};
};
template <>
struct EnumNames<WindowScaling> {
  static constexpr EnumName<WindowScaling> names[] = {
      {WindowScaling::density, "density"}, {WindowScaling::spectrum, "spectrum"}, {WindowScaling::none, "none"}};
};

namespace {

// The value of each mode as an expression of the real part r and the imaginary part i, [samples, channels, frames,
// frequencies].
const char* expression_of(SpectrogramMode mode) {
  switch (mode) {
    case SpectrogramMode::log:
      return "0.5 * log(maximum(r * r + i * i, 1e-7))";
    case SpectrogramMode::magnitude:
      return "sqrt(maximum(r * r + i * i, 1e-7))";
    case SpectrogramMode::psd:
      return "concatenate([r[..., :1] ** 2 + i[..., :1] ** 2, 2 * (r[..., 1:-1] ** 2 + i[..., 1:-1] ** 2), "
             "r[..., -1:] ** 2 + i[..., -1:] ** 2], axis=-1)";
    case SpectrogramMode::real:
      return "r";
    case SpectrogramMode::imag:
      return "i";
    case SpectrogramMode::angle:
      // The smaller part is divided by the larger one, which is 0 only if both are.
      return "where(abs(i) > abs(r), where(i < 0, -1.5707963267948966, 1.5707963267948966) - arctan(r / where(abs(i) > "
             "abs(r), i, 1)), arctan(i / where((abs(i) > abs(r)) | (r == 0), 1, r)) + where(r < 0, where(i < 0, "
             "-3.141592653589793, 3.141592653589793), 0))";
    case SpectrogramMode::stft:
      return "concatenate([r, i], axis=-1)";
  }
  return "";
}

struct StftSpectrogramOptions final : ChainedLayer {
  SpectrogramMode mode = SpectrogramMode::log;
  std::int64_t frame_length = 256;
  Auto<std::int64_t> frame_step, fft_length;
  SignalWindow window = SignalWindow::hann;
  bool periodic = false;
  WindowScaling scaling = WindowScaling::density;
  PaddingMode padding = PaddingMode::valid;
  bool expand_dims = false;

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    if (!is_sequence(layer, inputs[0])) return {};
    const Shape x = layer.shape(inputs[0]);
    Window frames{{1, frame_length}, {1, frame_step.or_else(frame_length / 2)}, {1, 1}, {}, {}};
    if (const auto wrong = resolve_padding(frames, padding, {x[1], x[0]}, "frame_length")) {
      return layer.error(*wrong, inputs[0]);
    }
    const TensorId channels =
        layer.op(std::make_shared<Permute>(std::vector<std::int64_t>{0, 2, 1}), {inputs[0].tensor})[0];
    const TensorId rows = layer.op(std::make_shared<Reshape>(layer.batch_of({x[1], x[0], 1})), {channels})[0];
    std::map<std::string, TensorId> parts;
    const auto add = [&](const char* part, const char* kernel, double (*function)(double)) {
      const Shape shape{frame_length, 1, frequencies()};
      Initializer initializer;
      initializer.compute = [options = *this, function](float* values) { options.fill(function, values); };
      const TensorId weights = layer.parameter(kernel, shape, std::move(initializer), true);
      parts[part] = layer.op(std::make_shared<Conv2d>(frames, 1), {rows, weights})[0];
    };
    if (mode != SpectrogramMode::imag) add("r", "real_kernel", [](double angle) { return std::cos(angle); });
    if (mode != SpectrogramMode::real) add("i", "imag_kernel", [](double angle) { return -std::sin(angle); });
    return layer.output(arranged(layer, value_of(layer, expression_of(mode), parts)));
  }

  std::int64_t frequencies() const {
    std::int64_t length = 1;
    while (length < frame_length) length *= 2;
    return fft_length.or_else(length) / 2 + 1;
  }

 private:
  // [samples, frames, channels * frequencies] or, with expand_dims, [samples, frames, frequencies, channels].
  TensorId arranged(Layer& layer, TensorId y) const {
    const Shape of = layer.shape(layer.output(y));  // channels, frames, frequencies
    const std::vector<std::int64_t> order =
        expand_dims ? std::vector<std::int64_t>{0, 2, 3, 1} : std::vector<std::int64_t>{0, 2, 1, 3};
    y = layer.op(std::make_shared<Permute>(order), {y})[0];
    return expand_dims ? y : layer.op(std::make_shared<Reshape>(layer.batch_of({of[1], of[0] * of[2]})), {y})[0];
  }

  // Writes the values of a kernel: function(2 pi t f / length) under the window, for each time t and frequency f.
  void fill(double (*function)(double), float* values) const {
    std::vector<double> factors = signal_window(window, frame_length, periodic);
    double sum = 0, squares = 0;
    for (const double factor : factors) sum += factor, squares += factor * factor;
    const double scale = window == SignalWindow::none || scaling == WindowScaling::none ? 1
                         : scaling == WindowScaling::density                            ? std::sqrt(squares)
                                                                                        : sum;
    const std::int64_t count = frequencies(), length = 2 * (count - 1);
    for (std::int64_t t = 0; t < frame_length; ++t) {
      for (std::int64_t f = 0; f < count; ++f) {
        const double angle = 2 * std::numbers::pi * static_cast<double>(t * f % length) / static_cast<double>(length);
        const double value = function(angle);
        const bool is_zero = std::abs(value) < 1e-12;  // such as the sine of pi, whose sign would decide an angle
        values[t * count + f] =
            is_zero ? 0.0f : static_cast<float>(value * factors[static_cast<std::size_t>(t)] / scale);
      }
    }
  }
};

void check_lengths_of_frames(const StftSpectrogramOptions& options, const Node& node, Reader& reader) {
  if (options.frame_step.or_else(1) > options.frame_length) {
    reader.error(node.location,
                 format("frame_step {} exceeds frame_length {}", *options.frame_step.given, options.frame_length));
  }
  if (options.fft_length.or_else(options.frame_length) < options.frame_length) {
    reader.error(node.location,
                 format("fft_length {} is below frame_length {}", *options.fft_length.given, options.frame_length));
  }
  if (options.frame_length > 2) return;
  if (options.window == SignalWindow::hann && !options.periodic) {
    reader.error(node.location, "all values of a symmetric hann window of 2 steps are 0: set `frame_length: 3`");
  }
  if (options.mode == SpectrogramMode::psd && !options.fft_length.given) {
    reader.error(node.location, "mode psd needs at least 3 frequencies: set `fft_length: 4`");
  }
}

}  // namespace

Section stft_spectrogram() {
  using O = StftSpectrogramOptions;
  return layer_keys<O>(
             "stft_spectrogram",
             "The short-time Fourier transform of sequences (steps, channels), by convolutions whose kernels are "
             "weights, as in Keras: they are trained unless `freeze` names the layer. The output has the shape "
             "(frames, channels * frequencies).")
      .key("mode", &O::mode,
           "The output: logarithm of the magnitude; magnitude; psd: power, doubled for frequencies that have a mirror "
           "image; real or imaginary part; angle; or stft: the real parts of a channel, then its imaginary parts.")
      .key("frame_length", &O::frame_length, "Steps of a frame.", between(2, 1 << 16))
      .key("frame_step", &O::frame_step, "Steps from one frame to the next; auto: half of frame_length.", at_least(1))
      .key("fft_length", &O::fft_length,
           "Length of the Fourier transform, which has half as many frequencies and one more; auto: the smallest power "
           "of "
           "two that is not below frame_length.",
           between(4, 1 << 16))
      .key("window", &O::window, "The window by which frames are multiplied.")
      .key("periodic", &O::periodic, "Whether the window is periodic instead of symmetric.")
      .key("scaling", &O::scaling,
           "What the window is divided by: density: the root of the sum of its squares; spectrum: the sum of its "
           "values.")
      .key("padding", &O::padding, "Padding of the sequence.")
      .key("expand_dims", &O::expand_dims, "Whether the output is an image (frames, frequencies, channels).")
      .check(check_lengths_of_frames);
}

}  // namespace trainctl
