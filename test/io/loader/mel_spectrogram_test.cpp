// Compares Fourier transforms with their definition, and mel spectrograms with Keras'
// (test/golden/keras_spectrograms.py).
#include "io/loader/signals/mel_spectrogram.h"

#include <cmath>
#include <numbers>
#include <random>

#include "io/checkpoint/safetensors.h"
#include "io/loader/data.h"
#include "test/catch.h"
#include "test/support/wav.h"

namespace trainctl::test::mel_spectrogram_test {
namespace {

// A tensor of float32 values of the file of golden values.
struct GoldenTensor {
  Shape shape;
  std::vector<float> values;

  explicit GoldenTensor(const std::string& name) {
    const SafetensorsFile file(TRAINCTL_SOURCE_DIR "/test/golden/keras_spectrograms.safetensors");
    const StoredTensor* tensor = file.header().find(name);
    REQUIRE(tensor != nullptr);
    shape = tensor->shape;
    values.resize(static_cast<std::size_t>(shape.count()));
    file.read(*tensor, values.data());
  }
};

// The samples of a data set of one batch.
std::vector<float> first_batch(const std::string& yaml, Shape& shape) {
  const Data data(data_options(yaml), 1);
  shape = data.info().inputs[0].sample;
  const auto source = data.training(1, {}, {1, 0, 0});
  const auto& batch = source->next();
  const auto* values = batch.inputs[0].as<float>();
  return {values, values + shape.count()};
}

std::string error_of(const std::string& yaml) {
  try {
    Shape shape;
    first_batch(yaml, shape);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::config);
    return error.what();
  }
  return "it was read";
}

void says(const std::string& message, const std::string& text) {
  CAPTURE(message);
  CHECK(message.find(text) != std::string::npos);
}

}  // namespace

TEST_CASE("FourierTransform computes its definition for all lengths") {
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  for (std::int64_t length : {1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 30, 49, 64, 100, 127, 400, 512}) {
    std::vector<std::complex<double>> x, y(static_cast<std::size_t>(length));
    for (std::int64_t i = 0; i < length; ++i) x.emplace_back(normal(random), normal(random));
    FourierTransform(length).apply(x.data(), y.data());
    double largest = 0;
    for (std::int64_t k = 0; k < length; ++k) {
      std::complex<double> sum = 0;
      for (std::int64_t n = 0; n < length; ++n) {
        sum +=
            x[static_cast<std::size_t>(n)] *
            std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(n * k % length) / static_cast<double>(length));
      }
      largest = std::max(largest, std::abs(sum - y[static_cast<std::size_t>(k)]));
    }
    CHECK(largest < 1e-11);
  }
}

TEST_CASE("mel spectrograms have Keras' values") {
  MelSettings settings{512, 128, 512, SignalWindow::hann, 16000, 20, 20, 8000, true, 80, 2, 1e-10, 1};
  const auto check = [&](const std::string& name, double tolerance) {
    CAPTURE(name);
    const GoldenTensor x(name + "/x"), y(name + "/y");
    const MelSpectrogram mel(settings);
    REQUIRE(mel.shape_of(x.shape) == y.shape);
    std::vector<float> values;
    mel.apply(x.values.data(), x.shape, values);
    REQUIRE(values.size() == y.values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      REQUIRE(values[i] == Approx(y.values[i]).epsilon(tolerance).margin(tolerance));
    }
    if (x.shape[1] != 1) return;
    std::vector<float> plain;
    mel.apply(x.values.data(), {x.shape[0]}, plain);
    CHECK(plain == values);
  };
  check("mel_default", 1e-3);
  settings = {256, 77, 200, SignalWindow::hamming, 16000, 16, 20, 8000, true, 20, 2, 1e-10, 0.5};
  check("mel_short_window", 1e-3);
  settings = {400, 160, 400, SignalWindow::hann, 8000, 12, 100, 3000, false, 80, 1, 1e-10, 1};
  check("mel_magnitude", 1e-4);
  settings = {96, 40, 96, SignalWindow::none, 16000, 10, 20, 8000, false, 80, 2, 1e-10, 1};
  check("mel_no_window", 1e-4);
}

TEST_CASE("mel_spectrogram is a transform of WAV files, whose sampling rate it takes") {
  const TempFolder folder;
  std::vector<int> stored;
  std::mt19937 random(5);
  for (int i = 0; i < 900; ++i) stored.push_back(static_cast<int>(random() % 20001) - 10000);
  write_file(folder / "a/x.wav", wav16(stored, 1, 8000));
  const std::string data = format("dataset: audio_classification, path: {}, workers: 0", folder.text());
  const std::string mel = "fft_length: 64, sequence_stride: 30, num_mel_bins: 9";
  Shape shape;
  const std::vector<float> values =
      first_batch(format("{{{}, transform: [{{mel_spectrogram: {{{}}}}}, {{rescale: 0.5}}]}}", data, mel), shape);
  std::vector<float> x, expected;
  for (const int value : stored) x.push_back(static_cast<float>(value) / 32768);
  const MelSpectrogram reference({64, 30, 64, SignalWindow::hann, 8000, 9, 20, 4000, true, 80, 2, 1e-10, 1});
  reference.apply(x.data(), {900, 1}, expected);
  CHECK(shape == Shape{9, 31, 1});
  for (float& value : expected) value *= 0.5f;
  CHECK(values == expected);

  const auto error = [&](const std::string& transform) {
    return error_of(format("{{{}, transform: [{}]}}", data, transform));
  };
  says(error("{mel_spectrogram: {sampling_rate: 16000}}"),
       "the samples have 8000 values per second, and mel_spectrogram has the sampling_rate 16000");
  says(error("{rescale: 2}, mel_spectrogram"), "must be the first step");
  says(error("mel_spectrogram, mel_spectrogram"), "must be the first step");
  says(error("{mel_spectrogram: {min_freq: 5000}}"), "min_freq 5000, which is not below its max_freq 4000");
}

TEST_CASE("mel_spectrogram needs sound, and images can be cut out of what it makes") {
  const TempFolder folder;
  std::vector<float> x(2 * 300);
  std::mt19937 random(6);
  for (float& value : x) value = static_cast<float>(random() % 1000) / 500 - 1;
  write_file(folder / "x.npy", npy("<f4", "(2, 300)", raw(x)));
  write_file(folder / "y.npy", npy("|u1", "(2,)", std::string("\0\1", 2)));
  const std::string data = format("dataset: npy, x: {0}/x.npy, y: {0}/y.npy, workers: 0", folder.text());
  const std::string mel = "{mel_spectrogram: {fft_length: 32, sequence_stride: 10, num_mel_bins: 8}}";
  Shape shape;
  first_batch(format("{{{}, transform: [{}, {{center_crop: [8, 20]}}, {{normalize: measured}}]}}", data, mel), shape);
  CHECK(shape == Shape{8, 20, 1});
  write_file(folder / "x.npy", npy("<f4", "(2, 3, 10, 10)", raw(x)));
  says(error_of(format("{{{}, transform: [{}]}}", data, mel)), "needs sound of shape (values) or (values, channels)");
  write_file(folder / "x.npy", npy("|u1", "(2, 300)", std::string(600, '\3')));
  says(error_of(format("{{{}, transform: [{}]}}", data, mel)), "needs sound in floating-point numbers, not bytes");
}

}  // namespace trainctl::test::mel_spectrogram_test
