// Tests networks whose output is an image: the segmentation config on a generated data set, and an autoencoder.
#include <array>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "core/base/format.h"
#include "io/datasets/images/mask_codec.h"
#include "test/catch.h"
#include "test/support/command.h"

namespace trainctl::test::segmentation_test {
namespace {

namespace fs = std::filesystem;

const std::string source = TRAINCTL_SOURCE_DIR;

// The pixels of a mask of gray values.
std::vector<std::byte> mask(const std::string& path) {
  const std::string file = read_file(path);
  std::vector<std::byte> pixels;
  decode_mask(reinterpret_cast<const std::byte*>(file.data()), std::ssize(file), path, pixels);
  return pixels;
}

TEST_CASE("the U-Net of the configs finds discs and squares in noise, on two ranks") {
  const Folder folder;
  const std::string config = source + "/configs/shapes-unet.yaml", path = folder / "data";
  const std::string make = format("'{}/scripts/make-shapes' '{}'", source, path);
  const std::vector<std::string> sets = {"--set", "data.path=" + path + "/train", "--set",
                                         "data.validation.path=" + path + "/validation"};
  const auto with_sets = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), sets.begin(), sets.end());
    return trainctl(folder, arguments);
  };
  const Finished without = with_sets({"check", config, "--json"});  // before the data exists
  CHECK(without.code == 0);
  REQUIRE(std::system(make.c_str()) == 0);
  const Finished checked = with_sets({"check", config, "--json"});
  INFO(tail(checked.errors));
  CHECK(checked.code == 0);
  // The programs of smaller last batches are known with the data, and may need a little more.
  const double known = Json::parse(checked.out)["arena_bytes"], estimated = Json::parse(without.out)["arena_bytes"];
  CHECK(estimated == Approx(known).epsilon(0.01));

  const Finished run = with_sets({"run", config, "--ranks", "2"});
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  const Json last = events(folder / "runs/shapes-unet", "epoch").back()["validation"];
  INFO(last.dump());
  // A network that predicts only background has 0.27, one that predicts a square for every shape 0.55.
  CHECK(last["mean_iou"].get<double>() > 0.8);

  // Masks have the accuracy that eval reports; the shares are those of their pixels.
  const Finished eval = with_sets({"eval", config, "--json", "--ranks", "1"});
  INFO(tail(eval.errors));
  REQUIRE(eval.code == 0);
  const Finished predicted =
      trainctl(folder, {"predict", "runs/shapes-unet", "data/validation/images", "--out", "masks", "--ranks", "2"});
  INFO(tail(predicted.errors));
  REQUIRE(predicted.code == 0);
  std::istringstream lines(predicted.out);
  std::string line;
  REQUIRE(std::getline(lines, line));
  CHECK(line == "input,0,1,2");
  double right = 0, pixels = 0;
  while (std::getline(lines, line)) {
    const std::string name = fs::path(line.substr(0, line.find(','))).filename();
    const std::vector<std::byte> found = mask(folder / ("masks/" + name)),
                                 wanted = mask(path + "/validation/masks/" + name);
    REQUIRE(found.size() == 48 * 48);
    std::array<double, 3> shares{};
    for (std::size_t i = 0; i < found.size(); ++i) {
      right += found[i] == wanted[i] ? 1 : 0;
      shares.at(static_cast<std::size_t>(found[i])) += 1.0 / (48 * 48);
    }
    pixels += 48 * 48;
    const std::size_t comma = line.find(',');
    std::istringstream numbers(line.substr(comma + 1));
    for (const double share : shares) {
      std::string number;
      std::getline(numbers, number, ',');
      CHECK(std::stod(number) == Approx(share).margin(1e-6));
    }
  }
  REQUIRE(pixels > 0);
  CHECK(right / pixels == Approx(Json::parse(eval.out)["accuracy"].get<double>()).epsilon(1e-5));
}

TEST_CASE("an autoencoder learns digits through eight numbers") {
  const Folder folder;
  const std::string config = folder.write("auto.yaml", format(R"(
data: {{dataset: npy, path: {}/configs/data/digits.npz, label_mode: input, transform: [{{rescale: 1/16}}]}}
model:
  layers:
    - flatten
    - dense: {{units: 48, activation: relu}}
    - dense: {{units: 8}}
    - dense: {{units: 48, activation: relu}}
    - dense: {{units: 64}}
    - reshape: [8, 8, 1]
train: {{batch_size: 32, epochs: 12, loss: mean_squared_error, optimizer: {{name: adam, learning_rate: 2e-3}}}}
)",
                                                              source));
  CHECK(trainctl(folder, {"check", config, "--quiet"}).code == 0);
  const Finished run = trainctl(folder, {"run", config, "--ranks", "2"});
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  // The digits' variance, the loss of the best constant image, is 0.073; eight principal components leave 0.024.
  CHECK(events(folder / "runs/auto", "epoch").back()["train"]["loss"].get<double>() < 0.035);
}

}  // namespace
}  // namespace trainctl::test::segmentation_test
