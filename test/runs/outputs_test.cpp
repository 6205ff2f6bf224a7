// Tests networks with several inputs and outputs, as users write them.
#include <filesystem>
#include <sstream>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/files.h"

namespace trainctl::test::outputs_test {
namespace {

constexpr std::int64_t samples = 240;

// Writes images with one dark quarter, whose number is the class, and tables. The target value is the sum of the
// table's row and a quarter of the class.
void write_arrays(const Folder& folder) {
  std::vector<std::uint8_t> image;
  std::vector<float> table, size;
  std::vector<std::int64_t> kind;
  for (std::int64_t i = 0; i < samples; ++i) {
    kind.push_back(i * 7919 % 101 % 4);
    for (std::int64_t p = 0; p < 36; ++p) {
      const bool dark = p / 18 * 2 + p % 6 / 3 == kind.back();
      image.push_back(static_cast<std::uint8_t>((i * 36 + p) * 6007 % 256 / (dark ? 8 : 1)));
    }
    float sum = 0.25f * static_cast<float>(kind.back());
    for (std::int64_t c = 0; c < 3; ++c) {
      table.push_back(static_cast<float>((i * 3 + c) * 4001 % 97) / 48.0f - 1.0f);
      sum += table.back();
    }
    size.push_back(sum);
  }
  folder.write("image.npy", npy("|u1", format("({}, 6, 6, 1)", samples), raw(image)));
  folder.write("table.npy", npy("<f4", format("({}, 3)", samples), raw(table)));
  folder.write("kind.npy", npy("<i8", format("({},)", samples), raw(kind)));
  folder.write("size.npy", npy("<f4", format("({}, 1)", samples), raw(size)));
}

// A network on the image and the table; with both outputs, or with the class only.
std::string config_of(const Folder& folder, bool both = true) {
  write_arrays(folder);
  return folder.write(
      both ? "both.yaml" : "kind.yaml",
      format(R"(
data:
  dataset: npy
  x: {{image: image.npy, table: table.npy}}
  y: {{kind: kind.npy{}}}
  validation: {{split: 0.2}}
  transform: {{image: [{{rescale: 1/255}}], table: [{{normalize: measured}}]}}
model:
  inputs: [image, table]
  layers:
    - conv2d: {{from: image, filters: 6, kernel_size: 3, activation: relu}}
    - flatten: {{name: pixels}}
    - dense: {{name: numbers, from: table, units: 8, activation: relu}}
    - concatenate: {{from: [pixels, numbers]}}
    - dense: {{name: trunk, units: 24, activation: relu}}
    - dense: {{name: kind, units: 4, activation: softmax}}
{}
  outputs: [kind{}]
train:
  batch_size: 24
  epochs: 30
  loss: {{kind: sparse_categorical_crossentropy{}}}
  metrics: {{kind: [accuracy]{}}}
  optimizer: {{name: adam, learning_rate: 0.01}}
{})",
             both ? ", size: size.npy" : "", both ? "    - dense: {name: size, from: trunk, units: 1}" : "",
             both ? ", size" : "", both ? ", size: huber" : "", both ? ", size: [mean_absolute_error]" : "",
             both ? "  loss_weights: {size: 2}\n" : ""));
}

std::vector<Json> train(const Folder& folder, const std::string& config, int ranks,
                        std::vector<std::string> more = {}) {
  const std::string directory = folder / format("ranks{}", ranks);
  more.insert(more.begin(), {"run", config, "--ranks", std::to_string(ranks), "--run-dir", directory});
  const Finished run = trainctl(folder, more);
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  return events(directory, "epoch");
}

}  // namespace

TEST_CASE("a network of two inputs and two outputs learns both, on one rank as on two") {
  const Folder folder;
  const std::string config = config_of(folder);
  REQUIRE(trainctl(folder, {"check", config, "--quiet"}).code == 0);
  const std::vector<Json> one = train(folder, config, 1), two = train(folder, config, 2);
  REQUIRE(one.size() == 30);
  REQUIRE(two.size() == 30);
  for (std::size_t epoch = 0; epoch < 6; ++epoch) {
    for (const char* name : {"loss", "kind_loss", "size_loss", "size_mean_absolute_error"}) {
      CAPTURE(epoch, name);
      CHECK(two[epoch]["train"][name].get<double>() == Approx(one[epoch]["train"][name].get<double>()).epsilon(2e-3));
    }
  }
  const Json& last = one.back()["train"];
  CHECK(last["loss"].get<double>() == Approx(last["kind_loss"].get<double>() + 2 * last["size_loss"].get<double>()));
  CHECK(one.back()["validation"]["kind_accuracy"] == 1.0);
  CHECK(one.back()["validation"]["size_mean_absolute_error"].get<double>() < 0.2);

  const Finished evaluated = trainctl(folder, {"eval", config, "--run", folder / "ranks2", "--json"});
  INFO(tail(evaluated.errors));
  REQUIRE(evaluated.code == 0);
  CHECK(Json::parse(evaluated.out)["kind_accuracy"] == 1.0);
}

TEST_CASE("a network of two inputs and one output stops in an epoch and resumes to the same weights") {
  const Folder folder;
  const std::string config = config_of(folder, false);
  const auto weights = [&](const std::string& directory, const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"run", config, "--ranks", "1", "--run-dir", folder / directory};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished run = trainctl(folder, arguments);
    INFO(tail(run.errors));
    REQUIRE(run.code == 0);
    return events(folder / directory, "end").back()["weights_sha256"].get<std::string>();
  };
  const std::string whole = weights("whole", {"--set", "train.epochs=4"});
  weights("parts", {"--set", "train.max_steps=11", "--set", "train.epochs=4"});
  CHECK(weights("parts", {"--set", "train.epochs=4"}) == whole);
  const std::vector<Json> a = events(folder / "whole", "epoch"), b = events(folder / "parts", "epoch");
  CHECK(a.back()["train"] == b.back()["train"]);
  CHECK(a.back()["validation"]["accuracy"].is_number());  // with one output its name is no prefix
}

TEST_CASE("predict accepts several inputs by name, and reports every output") {
  const Folder folder;
  const std::string config = config_of(folder);
  train(folder, config, 1, {"--set", "train.epochs=20"});
  const Finished eval =
      trainctl(folder, {"eval", config, "--run", folder / "ranks1", "--data", "training", "--json", "--ranks", "1"});
  REQUIRE(eval.code == 0);
  std::filesystem::create_directories(folder / "new");
  for (const char* name : {"image", "table"}) {
    std::filesystem::rename(folder / format("{}.npy", name), folder / format("new/{}.npy", name));
  }
  const auto predict = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"predict", "ranks1"});
    return trainctl(folder, arguments);
  };
  const Finished by_folder = predict({"new", "--ranks", "2"});
  INFO(tail(by_folder.errors));
  REQUIRE(by_folder.code == 0);
  CHECK(by_folder.out.starts_with("input,kind/prediction,kind/0,kind/1,kind/2,kind/3,size/value\n0,"));
  const Finished by_name = predict({"table=new/table.npy", "image=new/image.npy", "--format", "jsonl"});
  INFO(tail(by_name.errors));
  REQUIRE(by_name.code == 0);
  std::istringstream lines(by_name.out), table(by_folder.out);
  std::string line, row;
  std::getline(table, row);
  double right = 0, count = 0;
  for (std::int64_t i = 0; std::getline(lines, line); ++i) {
    const Json json = Json::parse(line);
    REQUIRE(std::getline(table, row));
    const std::string kind = json["outputs"]["kind"]["prediction"];
    CHECK(row.starts_with(format("{},{},", i, kind)));
    CHECK(std::stod(row.substr(row.rfind(',') + 1)) ==
          Approx(json["outputs"]["size"]["values"]["value"].get<double>()).margin(1e-4));
    right += kind == std::to_string(i * 7919 % 101 % 4) ? 1 : 0;
    count += 1;
  }
  CHECK(count == samples);
  const Finished held = trainctl(folder, {"predict", "ranks1", "new", "--json"});
  CHECK(Json::parse(held.out)["predictions"][7]["outputs"]["kind"]["probabilities"].size() == 4);
  CHECK(right / count > 0.9);
  CHECK(Json::parse(eval.out)["kind_accuracy"].get<double>() == Approx(right / count).margin(0.05));

  for (const auto& [arguments, message] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"image=new/image.npy"}, "the network has the inputs image, table, and no path is given for 'table'"},
           {{"new/image.npy"}, "new/image.npy does not hold an array for each"},
           {{"image=new/image.npy", "table=new/table.npy", "new"}, "the paths do not name each of them once"},
           {{"new", "--out", "p.npy"}, "--format npy writes one array, and the network has 2 outputs"}}) {
    const Finished wrong = predict(arguments);
    CAPTURE(message, wrong.errors);
    CHECK(wrong.code == 2);
    CHECK(contains(wrong.errors, message));
  }
  folder.write("new/table.npy", npy("<f4", "(7, 3)", raw(std::vector<float>(21, 0.5f))));
  const Finished uneven = predict({"new"});
  CHECK(uneven.code == 3);
  CHECK(contains(uneven.errors, "each input needs a row for every sample"));
}

TEST_CASE("settings that do not fit the inputs and outputs are refused") {
  const Folder folder;
  const std::string config = config_of(folder);
  struct Case {
    const char* setting;
    const char* message;
  };
  for (const auto& [setting, message] : {
           Case{"train.loss=huber", "the model has several outputs: set one value for each, {kind: ..., size: ...}"},
           Case{"train.loss={kind: sparse_categorical_crossentropy}", "no value is set for the output 'size'"},
           Case{"train.loss={kind: sparse_categorical_crossentropy, sise: huber}", "did you mean 'size'?"},
           Case{"train.loss_weights={sise: 2}", "the model has no output 'sise'; did you mean 'size'?"},
           Case{"train.metrics=[accuracy]", "the model has several outputs"},
           Case{"data.transform=[{rescale: 1/255}]", "the model has several inputs"},
           Case{"data.x={image: image.npy}", "no value is set for the input 'table'"},
           Case{"model.outputs=[kind, sise]", "there is no layer 'sise' for this output; did you mean 'size'?"},
           Case{"model.inputs=[image, table, more]", "no value is set for the input 'more'"},
           Case{"model.layers.0={conv2d: {filters: 6, kernel_size: 3}}", "set which one conv2d reads"},
           Case{"model.outputs=[kind, size, kind]", "output 'kind' is given twice"},
           Case{"checkpoint.monitor=val_accuracy", "val_kind_accuracy"},
           Case{"data={dataset: csv, path: table.csv}",
                "the model has 2 inputs and 2 outputs, but csv supports only one of each"},
       }) {
    const Finished checked = trainctl(folder, {"check", config, "--quiet", "--set", setting});
    CAPTURE(setting, tail(checked.errors));
    CHECK(checked.code == 2);
    CHECK(contains(checked.errors, message));
  }
  for (const char* key : {"data.transform", "data.augment", "data.label_mode", "train.metrics"}) {
    CAPTURE(key);  // the values in a resolved config if nothing is set
    const std::string nothing = std::string(key) + (std::string(key) == "data.label_mode" ? "=int" : "=[]");
    CHECK(trainctl(folder, {"check", config, "--quiet", "--set", nothing}).code == 0);
  }
  folder.write("table.npy", npy("<f4", "(7, 3)", raw(std::vector<float>(21, 0.5f))));
  const Finished uneven = trainctl(folder, {"run", config, "--ranks", "1"});
  CHECK(uneven.code == 3);
  CHECK(contains(uneven.errors, "table.npy"));
}

}  // namespace trainctl::test::outputs_test
