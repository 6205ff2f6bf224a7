// predict: without the training data, in every format, on several ranks, it says what eval counts.
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <sstream>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/data/files.h"
#include "test/data/images.h"
#include "test/run/command.h"

namespace trainctl::test::predict_test {
namespace {

namespace fs = std::filesystem;
using Rows = std::vector<std::vector<std::string>>;

// The lines of a CSV without quoted fields.
Rows rows_of(const std::string& csv) {
  Rows rows;
  std::istringstream lines(csv);
  for (std::string line; std::getline(lines, line);) {
    rows.emplace_back();
    std::istringstream fields(line);
    for (std::string field; std::getline(fields, field, ',');) rows.back().push_back(field);
  }
  return rows;
}

void train(const Folder& folder, const std::string& config) {
  const Finished run = trainctl(folder, {"run", config, "--ranks", "1"});
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
}

double accuracy_by_eval(const Folder& folder, const std::string& config, const std::string& data) {
  const Finished eval = trainctl(folder, {"eval", config, "--data", data, "--json", "--ranks", "1"});
  INFO(tail(eval.errors));
  REQUIRE(eval.code == 0);
  return Json::parse(eval.out)["accuracy"];
}

std::string predicted(const Folder& folder, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "predict");
  const Finished run = trainctl(folder, arguments);
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  return run.out;
}

// The share of rows, behind the head, whose prediction is expected(row).
template <class Expected>
double share_right(const Rows& rows, Expected expected) {
  double right = 0;
  for (std::size_t i = 1; i < rows.size(); ++i) right += rows[i][1] == expected(i - 1, rows[i]) ? 1 : 0;
  return right / static_cast<double>(rows.size() - 1);
}

}  // namespace

TEST_CASE("predict says of arrays what eval counts, on any number of ranks and in every format") {
  const Folder folder;
  std::mt19937 random(3);
  std::vector<float> x;
  std::vector<std::int64_t> y;
  for (int i = 0; i < 103; ++i) {
    y.push_back(static_cast<std::int64_t>(random() % 3));
    for (int k = 0; k < 6; ++k) {
      x.push_back(static_cast<float>(random() % 1000) / 100.0f + (k == y.back() ? 4.0f : 0.0f));
    }
  }
  folder.write("x.npy", npy("<f4", "(103, 6)", raw(x)));
  folder.write("y.npy", npy("<i8", "(103,)", raw(y)));
  const std::string config = folder.write("arrays.yaml", R"(
data: {dataset: npy, x: x.npy, y: y.npy, transform: [{normalize: measured}]}
model: {layers: [{dense: {units: 16, activation: relu}}, {dense: 3}]}
train: {batch_size: 20, epochs: 3, loss: sparse_categorical_crossentropy, metrics: [accuracy], optimizer: adam}
)");
  train(folder, config);
  const double accuracy = accuracy_by_eval(folder, config, "training");
  fs::remove(folder / "y.npy");  // not needed any more

  const std::string csv = predicted(folder, {"runs/arrays", "x.npy"});
  const Rows rows = rows_of(csv);
  REQUIRE(rows.size() == 104);
  CHECK(rows[0] == std::vector<std::string>{"input", "prediction", "0", "1", "2"});
  CHECK(share_right(rows, [&](std::size_t i, const auto&) { return std::to_string(y[i]); }) == Approx(accuracy));
  for (std::size_t i = 1; i < rows.size(); ++i) {  // the loss applies the softmax, the network does not end in one
    CHECK(rows[i][0] == std::to_string(i - 1));
    CHECK(std::stod(rows[i][2]) + std::stod(rows[i][3]) + std::stod(rows[i][4]) == Approx(1).epsilon(1e-5));
  }
  const Rows of_three = rows_of(predicted(folder, {"runs/arrays/checkpoints/last", "x.npy", "--ranks", "3"}));
  REQUIRE(of_three.size() == 104);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    CHECK(of_three[i][1] == rows[i][1]);
    CHECK(std::stod(of_three[i][2]) == Approx(std::stod(rows[i][2])).epsilon(1e-5));
  }
  predicted(folder, {"runs/arrays", "x.npy", "--out", "p.npy"});
  const std::string bytes = read_file(folder / "p.npy");
  CHECK(bytes.starts_with("\x93NUMPY"));
  CHECK(contains(bytes.substr(0, 128), "'shape': (103, 3)"));
  REQUIRE(bytes.size() == 128 + 103 * 3 * 4);
  float value = 0;
  std::memcpy(&value, bytes.data() + 128 + (5 * 3 + 1) * 4, 4);
  CHECK(value == Approx(std::stod(rows[6][3])));
  std::istringstream lines(predicted(folder, {"runs/arrays", "x.npy", "--format", "jsonl"}));
  std::string line;
  REQUIRE(std::getline(lines, line));
  const Json first = Json::parse(line);
  CHECK(first["prediction"] == rows[1][1]);
  CHECK(first["probabilities"]["2"].get<double>() == Approx(std::stod(rows[1][4])));
  CHECK(contains(predicted(folder, {"runs/arrays", "x.npy", "--format", "table"}), "prediction"));
  const Json document = Json::parse(predicted(folder, {config, "x.npy", "--json", "--ranks", "2"}));
  REQUIRE(document["predictions"].size() == 103);
  CHECK(document["predictions"][0]["prediction"] == rows[1][1]);
  CHECK(trainctl(folder, {"predict", config, "x.npy", "--json", "--out", "p.csv"}).code == 2);

  folder.write("narrow.npy", npy("<f4", "(20, 5)", raw(std::vector<float>(x.begin(), x.begin() + 100))));
  const Finished narrow = trainctl(folder, {"predict", "runs/arrays", "narrow.npy"});
  CHECK(narrow.code == 3);
  CHECK(contains(narrow.errors, "has shape 5, samples of the training part have 6"));
  folder.write("photo.png", png(4, 4, 0, random_bytes(16, 4)));
  const Finished photo = trainctl(folder, {"predict", "runs/arrays", "photo.png"});
  CHECK(photo.code == 3);
  CHECK(contains(photo.errors, "the network was trained on arrays of numbers"));
}

TEST_CASE("predict names the classes of images that it never saw, by the names kept with the run") {
  const Folder folder;
  std::mt19937 random(5);
  const auto write = [&](const std::string& part, int images) {
    for (const char* kind : {"dark", "light"}) {
      for (int i = 0; i < images; ++i) {
        std::string pixels;
        const int from = std::string(kind) == "dark" ? 0 : 60;  // the kinds overlap
        for (int p = 0; p < 20 * 24 * 3; ++p) pixels += static_cast<char>(from + static_cast<int>(random() % 190));
        folder.write(format("{}/{}/{}.png", part, kind, i), png(20, 24, 2, pixels));
      }
    }
  };
  write("train", 16);
  write("held", 9);
  const std::string config = folder.write("pictures.yaml", R"(
data:
  dataset: image_folder
  path: train
  validation: {path: held}
  transform: [{resize: 16}, {center_crop: 16}, {normalize: measured}]
  augment: [{random_crop: 12}, {random_flip: horizontal}]
model: {layers: [{conv2d: {filters: 4, kernel_size: 3}}, global_average_pooling2d, {dense: {units: 1, activation: sigmoid}}]}
train: {batch_size: 8, epochs: 2, loss: binary_crossentropy, metrics: [accuracy], optimizer: {name: adam, learning_rate: 0.02}}
)");
  train(folder, config);
  const double accuracy = accuracy_by_eval(folder, config, "validation");
  fs::remove_all(folder / "train");
  const Rows rows = rows_of(predicted(folder, {"runs/pictures", "held", "--ranks", "2"}));
  REQUIRE(rows.size() == 19);
  CHECK(rows[0] == std::vector<std::string>{"input", "prediction", "dark", "light"});
  const auto kind_of = [](std::size_t, const std::vector<std::string>& row) {
    return fs::path(row[0]).parent_path().filename().string();
  };
  CHECK(share_right(rows, kind_of) == Approx(accuracy));
  CHECK(rows_of(predicted(folder, {"runs/pictures/", "held"})) == rows);  // the best checkpoint, too
  const Rows two = rows_of(predicted(folder, {"runs/pictures", "held/light/3.png", "held/dark/0.png"}));
  REQUIRE(two.size() == 3);
  CHECK(two[1][0] == "held/light/3.png");
  CHECK(two[2][0] == "held/dark/0.png");

  folder.write("held/light/broken.png", "no image");
  const Finished broken = trainctl(folder, {"predict", "runs/pictures", "held"});
  CHECK(broken.code == 3);
  CHECK(contains(broken.errors, "held/light/broken.png"));
  CHECK(trainctl(folder, {"predict", "runs/pictures", "nowhere.png"}).code == 3);
  const Finished kind = trainctl(folder, {"predict", "runs/pictures", "held/dark", "--out", "p.txt"});
  CHECK(kind.code == 2);
  CHECK(contains(kind.errors, "ends in none of .csv, .jsonl and .npy"));
  const Finished none = trainctl(folder, {"predict", "held", "held/dark"});
  CHECK(none.code == 2);
  CHECK(contains(none.errors, "no run directory"));
}

TEST_CASE("predict reads tables by the words and measures of the training part") {
  const Folder folder;
  std::mt19937 random(9);
  std::string with_target = "size,colour,weight,kind\n", without = "colour,weight,size\n";
  std::vector<std::string> kinds;
  for (int i = 0; i < 90; ++i) {
    const unsigned size = random() % 100, colour = random() % 3, weight = random() % 50;
    const std::vector<std::string> colours{"red", "green", "blue"};
    kinds.push_back(size + (colour == 1 ? 40 : 0) > 60 + random() % 20 ? "big" : "small");
    const std::string weighs = i % 7 == 2 ? "" : std::to_string(weight);
    with_target += format("{},{},{},{}\n", size, colours[colour], weighs, kinds.back());
    without += format("{},{},{}\n", colours[colour], weighs, size);
  }
  folder.write("table.csv", with_target);
  folder.write("new.csv", without);
  const std::string config = folder.write("table.yaml", R"(
data: {dataset: csv, path: table.csv, missing: mean, standardize: true}
model: {layers: [{dense: {units: 16, activation: relu}}, {dense: {units: 2, activation: softmax}}]}
train: {batch_size: 16, epochs: 5, loss: sparse_categorical_crossentropy, metrics: [accuracy], optimizer: {name: adam, learning_rate: 0.01}}
)");
  train(folder, config);
  const double accuracy = accuracy_by_eval(folder, config, "training");
  fs::remove(folder / "table.csv");
  const Rows rows = rows_of(predicted(folder, {"runs/table", "new.csv"}));
  REQUIRE(rows.size() == 91);
  CHECK(rows[0] == std::vector<std::string>{"input", "prediction", "big", "small"});
  CHECK(share_right(rows, [&](std::size_t i, const auto&) { return kinds[i]; }) == Approx(accuracy));
  folder.write("lacking.csv", "colour,size\nred,3\n");
  const Finished lacking = trainctl(folder, {"predict", "runs/table", "lacking.csv"});
  CHECK(lacking.code == 3);
  CHECK(contains(lacking.errors, "has no column 'weight'"));
}

TEST_CASE("predict leaves out what a run skips, ends with its reader, and is not for pixels") {
  const Folder folder;
  for (const char* kind : {"a", "b"}) {
    for (int i = 0; i < 8; ++i) {
      folder.write(format("images/{}/{}.png", kind, i),
                   png(9, 9, 2, random_bytes(9 * 9 * 3, static_cast<unsigned>(i))));
    }
  }
  const std::string config = folder.write("skips.yaml", R"(
data: {dataset: image_folder, path: images, on_error: skip, transform: [{rescale: 1/255}]}
model: {layers: [flatten, {dense: {units: 2, activation: softmax}}]}
train: {batch_size: 8, epochs: 1, loss: sparse_categorical_crossentropy, optimizer: sgd}
)");
  train(folder, config);
  folder.write("images/b/2.png", "no image");
  const Finished run = trainctl(folder, {"predict", "runs/skips", "images/b"});
  REQUIRE(run.code == 0);
  const Rows rows = rows_of(run.out);
  REQUIRE(rows.size() == 9);
  CHECK(rows[3] == std::vector<std::string>{"images/b/2.png", "", ""});
  CHECK(rows[4].size() == 4);
  CHECK(contains(run.errors, "skipped: images/b/2.png"));
  const Json lines = Json::parse(predicted(folder, {"runs/skips", "images/b", "--json"}));
  CHECK(lines["predictions"][2]["error"] == "cannot be read");
  const std::string closed = format("cd '{}' && '{}' predict runs/skips images/a 2> errors | head -1 > first",
                                    folder.path().string(), TRAINCTL_BINARY);
  CHECK(std::system(closed.c_str()) == 0);
  CHECK(read_file(folder / "first") == "input,prediction,a,b\n");

  const std::string pixels = folder.write("pixels.yaml", R"(
data: {dataset: image_folder, path: images, on_error: skip, label_mode: input, transform: [{rescale: 1/255}]}
model: {layers: [{conv2d: {filters: 3, kernel_size: 3, padding: same}}]}
train: {batch_size: 8, epochs: 1, loss: mean_squared_error, optimizer: sgd}
)");
  train(folder, pixels);
  const Finished image = trainctl(folder, {"predict", "runs/pixels", "images/a"});
  CHECK(image.code == 2);
  CHECK(contains(image.errors, "the network ends in 9x9x3 for a sample"));
}

}  // namespace trainctl::test::predict_test
