// Tests networks whose targets are images of another folder: super-resolution on several ranks, resumed and predicted.
#include <cmath>
#include <random>

#include "core/base/format.h"
#include "io/datasets/images/image_codec.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/files.h"

namespace trainctl::test::image_pairs_test {
namespace {

constexpr std::size_t side = 8, factor = 2, samples = 33;

// Writes gray images of random values, and as targets the same images in which each pixel is repeated and made lighter:
// 60 + v / 2.
void write_pairs(const Folder& folder) {
  for (std::size_t n = 0; n < samples; ++n) {
    const std::string image = random_bytes(side * side, static_cast<unsigned>(n) + 1);
    std::string target;
    for (std::size_t y = 0; y < side * factor; ++y) {
      for (std::size_t x = 0; x < side * factor; ++x) {
        target += static_cast<char>(60 + static_cast<unsigned char>(image[y / factor * side + x / factor]) / 2);
      }
    }
    folder.write(format("low/{}.png", n), png(side, side, 0, image));
    folder.write(format("high/{}.png", n), png(side * factor, side * factor, 0, target));
  }
}

std::string config(const std::string& cache) {
  return format(R"yaml(
name: sharp
data:
  dataset: image_pairs
  images: low
  target_images: high
  shape: [6, 6, 1]
  validation: {{split: 0.2}}
  transform: [{{rescale: 1/255}}]
  target_transform: [{{normalize: {{mean: [120], std: [40]}}}}]
  augment: [{{random_crop: [6, 6]}}, {{random_flip: horizontal_and_vertical}}]
  cache: {}
model:
  layers:
    - conv2d_transpose: {{filters: 1, kernel_size: 2, strides: 2}}
strategy: {{reproducible: {{shards: 4}}}}
train:
  batch_size: 8
  epochs: 60
  loss: mean_squared_error
  metrics:
    - mean_absolute_error
    - {{name: psnr, expression: "-10 * log10(mean(square(y_true - y_pred), axis=[1, 2, 3]))", mode: max}}
  optimizer: {{name: adam, learning_rate: 0.05}}
)yaml",
                cache);
}

TEST_CASE("a network learns to enlarge images, with the same bits on one to three ranks and after a resume") {
  const Folder folder;
  write_pairs(folder);
  std::string hash;
  for (const int ranks : {1, 2, 3}) {
    CAPTURE(ranks);
    const std::string file = folder.write("sharp.yaml", config(ranks == 2 ? "disk" : "none"));
    const std::string directory = format("runs/{}", ranks);
    std::vector<std::string> command{"run",       file,      "--ranks",    std::to_string(ranks),
                                     "--run-dir", directory, "--progress", "none"};
    if (ranks == 3) {  // first a part of the steps
      std::vector<std::string> part = command;
      part.insert(part.end(), {"--set", "train.max_steps=47"});
      REQUIRE(trainctl(folder, part).code == 0);
      command.insert(command.end(), {"--resume", "auto"});
    }
    const Finished run = trainctl(folder, command);
    INFO(tail(run.errors));
    REQUIRE(run.code == 0);
    const std::string found = events(folder / directory, "end").back().at("weights_sha256");
    if (hash.empty()) hash = found;
    CHECK(found == hash);
  }
  // The network can represent the targets up to their rounding to bytes.
  const Json last = events(folder / "runs/1", "epoch").back();
  INFO(last.dump());
  CHECK(last["validation"]["loss"].get<double>() < 0.01);
  CHECK(last["validation"]["psnr"].get<double>() > 20);

  // Predictions are written in the range of the targets.
  const Finished predicted = trainctl(folder, {"predict", "runs/1", "low/3.png", "--out", "made"});
  INFO(tail(predicted.errors));
  REQUIRE(predicted.code == 0);
  CHECK(contains(predicted.errors, "random_crop in `augment` cuts out the centre of each image, 6x6 of 8x8 pixels"));
  Sample image;
  const std::string made = read_file(folder / "made/3.png");
  decode_sample(reinterpret_cast<const std::byte*>(made.data()), std::ssize(made), 1, "made", image);
  REQUIRE(image.shape == Shape{12, 12, 1});
  const std::string stored = random_bytes(side * side, 4);
  for (std::size_t y = 0; y < 12; ++y) {
    for (std::size_t x = 0; x < 12; ++x) {  // the central crop begins at pixel 1
      const int value = static_cast<unsigned char>(stored[(1 + y / factor) * side + 1 + x / factor]);
      CHECK(std::abs(static_cast<const std::uint8_t*>(image.values)[12 * y + x] - (60 + value / 2)) <= 8);
    }
  }
}

}  // namespace
}  // namespace trainctl::test::image_pairs_test
