// Networks that end in an image: the segmentation config on a data set made for it, and an autoencoder.
#include <cstdlib>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/run/command.h"

namespace trainctl::test::segmentation_test {
namespace {

const std::string source = TRAINCTL_SOURCE_DIR;

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
  const Finished without = with_sets({"check", config, "--json"});  // before there is data
  CHECK(without.code == 0);
  REQUIRE(std::system(make.c_str()) == 0);
  const Finished checked = with_sets({"check", config, "--json"});
  INFO(tail(checked.errors));
  CHECK(checked.code == 0);
  CHECK(Json::parse(without.out)["arena_bytes"] == Json::parse(checked.out)["arena_bytes"]);

  const Finished run = with_sets({"run", config, "--ranks", "2"});
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  const Json last = events(folder / "runs/shapes-unet", "epoch").back()["validation"];
  INFO(last.dump());
  // A network that sees only background has 0.27, one that takes every shape for a square 0.55.
  CHECK(last["mean_iou"].get<double>() > 0.8);
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
