// Tests TensorBoard's files with an independent reader of frames, checksums and fields.
#include <algorithm>
#include <random>

#include "io/datasets/images/image_codec.h"
#include "io/metrics/tensorboard/tensorboard.h"
#include "test/support/event_files.h"

namespace trainctl::test::tensorboard_test {
namespace {

TEST_CASE("TensorBoard's files have a run's curves, with separate files for training and validation") {
  const TempFolder folder;
  {
    TensorBoard board(folder / "board", "name: tried\n", "a graph", Duration::steps(10));
    StartEvent start;
    start.first_step = 300;
    board.start(start);
    GpuReading reading;
    reading.utilization = 0.75;
    const std::vector<GpuSample> gpus = {{1, reading}};
    for (int step = 301; step <= 315; ++step) board.step({step, step / 100.0, 1.0 / step, 0.1, 500, 3.5, 0.25, gpus});
    EpochEvent epoch;
    epoch.step = 315;
    epoch.train = {{"loss", 0.5}, {"accuracy", 0.875}};
    epoch.validation = {{"loss", 0.625}};
    board.epoch(epoch);
  }
  const std::vector<Fields> training = events_in(folder / "board/train");
  REQUIRE(training.size() == 6);
  CHECK(only(training[0], 3) == "brain.Event:2");
  double wall = 0;
  std::memcpy(&wall, only(training[0], 1).data(), 8);
  CHECK(std::abs(wall - static_cast<double>(std::time(nullptr))) < 600);
  CHECK(step_of(training[1]) == 301);  // TensorBoard ignores events of other files from this step on
  CHECK(number_at(only(fields_of(only(training[1], 7)), 1), 0, 8) == 1);
  CHECK(only(training[2], 4) == "a graph");
  const Fields text = fields_of(only(fields_of(only(training[3], 5)), 1));
  CHECK(only(text, 1) == "config");
  CHECK(only(fields_of(only(text, 8)), 8) == "```\nname: tried\n```\n");
  CHECK(only(fields_of(only(fields_of(only(text, 9)), 1)), 1) == "text");
  CHECK(step_of(training[4]) == 310);
  const std::map<std::string, float> step = scalars_of(training[4]);
  CHECK(step == std::map<std::string, float>{{"communication_share", 0},
                                             {"data_wait_share", 0.25f},
                                             {"gpu/1/utilization", 0.75f},
                                             {"gradient_norm", 3.5f},
                                             {"learning_rate", 0.1f},
                                             {"loss", static_cast<float>(1.0 / 310)},
                                             {"samples_per_second", 500}});
  CHECK(step_of(training[5]) == 315);
  CHECK(scalars_of(training[5]) == std::map<std::string, float>{{"epoch_accuracy", 0.875f}, {"epoch_loss", 0.5f}});
  const std::vector<Fields> validation = events_in(folder / "board/validation");
  REQUIRE(validation.size() == 3);
  CHECK(step_of(validation[2]) == 315);
  CHECK(scalars_of(validation[2]) == std::map<std::string, float>{{"epoch_loss", 0.625f}});
}

TEST_CASE("a histogram for TensorBoard has the tensor's values between its limits") {
  std::mt19937 random(Catch::rngSeed());
  std::normal_distribution<float> normal;
  std::vector<float> values;
  for (int i = 0; i < 5000; ++i) values.push_back(normal(random) * std::exp(4 * normal(random)));
  values.insert(values.end(), {0.0f, 0.0f, -0.0f, 1e-40f, std::numeric_limits<float>::infinity(),
                               std::numeric_limits<float>::quiet_NaN()});
  const std::int64_t finite = 5004;  // three of them zeros
  const TempFolder folder;
  {
    TensorBoard board(folder / "board", "", "", Duration::steps(1));
    board.start({});
    Histogram histogram;
    histogram.add(values);
    board.histogram(7, "weights/conv1/kernel", histogram);
    board.histogram(7, "weights/none", {});
  }
  const auto found = histograms_in(events_in(folder / "board/train"));
  REQUIRE(found.size() == 1);
  const HistogramFields& written = found.at({7, "weights/conv1/kernel"});
  std::erase_if(values, [](float value) { return !std::isfinite(value); });
  long double sum = 0, squares = 0;
  for (const long double value : values) sum += value, squares += value * value;
  CHECK(written.minimum == *std::ranges::min_element(values));
  CHECK(written.maximum == *std::ranges::max_element(values));
  CHECK(written.count == static_cast<double>(finite));
  CHECK(written.sum == Approx(static_cast<double>(sum)).epsilon(1e-9));
  CHECK(written.sum_of_squares == Approx(static_cast<double>(squares)).epsilon(1e-9));
  REQUIRE(std::ranges::is_sorted(written.limits));
  CHECK(written.counts.front() == 0);
  CHECK(written.limits.front() <= written.minimum);
  CHECK(written.limits.back() >= written.maximum);
  double zeros = 0;
  for (std::size_t i = 1; i < written.limits.size(); ++i) {
    const double low = written.limits[i - 1], high = written.limits[i];
    CAPTURE(low, high);
    const auto between = std::ranges::count_if(values, [&](double value) {
      return value != 0 && (value > low || (value == low && low >= 0)) &&
             (value < high || (value == high && high <= 0));
    });
    if (low != 0 && high != 0) CHECK(written.counts[i] == static_cast<double>(between));
    if (between > 0 && std::abs(high) > 1e-30 && std::abs(low) > 1e-30) CHECK(high / low <= 1.125 + 1e-9);
    if (between > 0 && std::abs(high) > 1e-30 && std::abs(low) > 1e-30) CHECK(low / high <= 1.125 + 1e-9);
    zeros += written.counts[i] - static_cast<double>(between);
  }
  CHECK(zeros == 3);
}

TEST_CASE("samples for TensorBoard are framed pictures and a table of predictions") {
  const TempFolder folder;
  std::mt19937 random(Catch::rngSeed());
  std::uniform_real_distribution<float> uniform(-2, 3);
  std::vector<float> pixels(5 * 4 * 3);
  for (float& value : pixels) value = uniform(random);
  pixels[7] = -2;  // becomes black
  pixels[11] = 3;  // becomes white
  const std::vector<float> grey{1, 2, 3, 4};
  {
    TensorBoard board(folder / "board", "", "", Duration::steps(1), {"rose", "tu|lip"});
    board.start({});
    const std::vector<JudgedSample> judged{{3, 1, {0.75f, 0.25f}, Shape{5, 4, 3}, pixels},
                                           {9, 0, {0.625f, 0.375f}, Shape{2, 2, 1}, grey}};
    board.samples(40, judged);
  }
  const auto found = strings_in(events_in(folder / "board/validation"));
  REQUIRE(found.size() == 3);
  const StringFields& table = found.at({40, "samples"});
  CHECK(table.plugin == "text");
  CHECK(table.shape.empty());
  CHECK(table.strings == std::vector<std::string>{"| sample | label | prediction | probability |\n|---|---|---|---|\n"
                                                  "| 3 | tu\\|lip | rose | 0.7500 |\n| 9 | rose | rose | 0.6250 |\n"});
  const auto decoded = [&](const std::string& name, std::int64_t height, std::int64_t width) {
    const StringFields& picture = found.at({40, name});
    CHECK(picture.plugin == "images");
    CHECK(picture.data_class == 3);
    CHECK(picture.shape == std::vector<std::int64_t>{3});
    CHECK(picture.strings.at(0) == std::to_string(width));
    CHECK(picture.strings.at(1) == std::to_string(height));
    const std::string& file = picture.strings.at(2);
    Sample sample;
    decode_png(reinterpret_cast<const std::byte*>(file.data()), std::ssize(file), 3, name, sample);
    REQUIRE(sample.shape == Shape{height, width, 3});
    return sample.buffer;
  };
  const std::vector<std::byte> wrong = decoded("samples/3 tu|lip", 11, 10), right = decoded("samples/9 rose", 8, 8);
  const auto at = [](const std::vector<std::byte>& image, int width, int row, int column, int channel) {
    return std::to_integer<int>(image[static_cast<std::size_t>((row * width + column) * 3 + channel)]);
  };
  CHECK(at(wrong, 10, 0, 0, 0) > at(wrong, 10, 0, 0, 1));  // red
  CHECK(at(right, 8, 7, 7, 1) > at(right, 8, 7, 7, 0));    // green
  for (int row = 0; row < 5; ++row) {
    for (int column = 0; column < 4; ++column) {
      for (int channel = 0; channel < 3; ++channel) {
        const float value = pixels[static_cast<std::size_t>((row * 4 + column) * 3 + channel)];
        CHECK(std::abs(at(wrong, 10, row + 3, column + 3, channel) - (value + 2) / 5 * 255) < 0.51);
      }
    }
  }
  CHECK(at(right, 8, 3, 3, 0) == 0);
  CHECK(at(right, 8, 3, 4, 2) == 85);
  CHECK(at(right, 8, 4, 4, 1) == 255);
}

}  // namespace
}  // namespace trainctl::test::tensorboard_test
