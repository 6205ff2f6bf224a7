// Tests the shapes and the errors of stft_spectrogram. test/core/ops compares its values with Keras'.
#include "test/catch.h"
#include "test/core/layers/build.h"

namespace trainctl::testing::stft_spectrogram_test {
namespace {

Shape output(const std::string& options, Shape sample) {
  return build("layers: [{stft_spectrogram: {" + options + "}}, flatten, {dense: 1}]", std::move(sample))
      .layers[0]
      .output;
}

}  // namespace

TEST_CASE("stft_spectrogram has Keras' shapes and parameters") {
  CHECK(output("", {16000, 1}) == Shape{124, 129});
  CHECK(output("frame_step: 100, fft_length: 512, padding: same", {16000, 2}) == Shape{160, 514});
  CHECK(output("expand_dims: true, padding: same", {16000, 3}) == Shape{125, 129, 3});
  CHECK(output("mode: stft, frame_length: 100", {1000, 2}) == Shape{19, 260});
  const auto count = [](const std::string& mode) {
    return parameters(build("layers: [{stft_spectrogram: {mode: " + mode + "}}]", {300, 2}));
  };
  CHECK(count("log") == 2 * 256 * 129);
  CHECK(count("real") == 256 * 129);
  CHECK(count("imag") == 256 * 129);
}

TEST_CASE("stft_spectrogram reports what it cannot compute") {
  const auto has = [](const std::string& options, Shape sample, const char* part) {
    const std::string text = errors("layers: [{stft_spectrogram: {" + options + "}}]", std::move(sample));
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  has("", {16000}, "is not a sequence (steps, channels)");
  has("", {200, 1}, "frame_length 256 exceeds input 200");
  has("frame_length: 8, frame_step: 9", {200, 1}, "frame_step 9 exceeds frame_length 8");
  has("frame_length: 8, fft_length: 7", {200, 1}, "fft_length 7 is below frame_length 8");
  has("frame_length: 2", {200, 1}, "all values of a symmetric hann window of 2 steps are 0");
  has("frame_length: 2, mode: psd, window: none", {200, 1}, "mode psd needs at least 3 frequencies");
}

}  // namespace trainctl::testing::stft_spectrogram_test
