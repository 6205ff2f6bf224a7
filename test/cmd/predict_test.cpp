// Tests predict without the training data, in every format and on several ranks: predictions agree with eval.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <sstream>

#include "core/base/format.h"
#include "io/datasets/images/image_codec.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/files.h"
#include "test/support/images.h"

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

// Checks for the same samples and classes, and values that differ by rounding only: kernels may depend on the size of a
// batch.
void check_alike(const Rows& a, const Rows& b) {
  REQUIRE(a.size() == b.size());
  CHECK(a[0] == b[0]);
  for (std::size_t i = 1; i < a.size(); ++i) {
    REQUIRE(a[i].size() == b[i].size());
    CHECK(std::equal(a[i].begin(), a[i].begin() + 2, b[i].begin()));
    for (std::size_t k = 2; k < a[i].size(); ++k) CHECK(std::stod(a[i][k]) == Approx(std::stod(b[i][k])).epsilon(1e-5));
  }
}

// The share of rows after the header whose prediction is expected(index, row).
template <class Expected>
double share_right(const Rows& rows, Expected expected) {
  double right = 0;
  for (std::size_t i = 1; i < rows.size(); ++i) right += rows[i][1] == expected(i - 1, rows[i]) ? 1 : 0;
  return right / static_cast<double>(rows.size() - 1);
}

}  // namespace

TEST_CASE("predictions for arrays agree with eval, on any number of ranks and in every format") {
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
  for (std::size_t i = 1; i < rows.size(); ++i) {  // the softmax is part of the loss, not of the network
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
  CHECK(contains(narrow.errors, "has shape 5, but samples of the training split have 6"));
  folder.write("photo.png", png(4, 4, 0, random_bytes(16, 4)));
  const Finished photo = trainctl(folder, {"predict", "runs/arrays", "photo.png"});
  CHECK(photo.code == 3);
  CHECK(contains(photo.errors, "the network was trained on arrays of numbers"));
}

TEST_CASE("predict names the classes of new images by the names that are kept with the run") {
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
  check_alike(rows_of(predicted(folder, {"runs/pictures/", "held"})), rows);  // the best checkpoint, too
  const Rows two = rows_of(predicted(folder, {"runs/pictures", "held/light/3.png", "held/dark/0.png"}));
  REQUIRE(two.size() == 3);
  CHECK(two[1][0] == "held/light/3.png");
  CHECK(two[2][0] == "held/dark/0.png");

  // A photo of another size can have other transforms than those of the run; only the data section can be set.
  std::string pixels;
  for (int p = 0; p < 90 * 50 * 3; ++p) pixels += static_cast<char>(130 + random() % 100);
  folder.write("photo.png", png(90, 50, 2, pixels));
  const std::string closer = "data.transform=[{resize: 24}, {center_crop: 16}, {normalize: measured}]";
  const Rows photo = rows_of(predicted(folder, {"runs/pictures", "photo.png", "--set", closer}));
  REQUIRE(photo.size() == 2);
  CHECK(photo[1] != rows_of(predicted(folder, {"runs/pictures", "photo.png"}))[1]);
  const Finished set = trainctl(folder, {"predict", "runs/pictures", "photo.png", "--set", "train.epochs=3"});
  CHECK(set.code == 2);
  CHECK(contains(set.errors, "only its data section can be set"));

  folder.write("held/light/broken.png", "no image");
  const Finished broken = trainctl(folder, {"predict", "runs/pictures", "held"});
  CHECK(broken.code == 3);
  CHECK(contains(broken.errors, "held/light/broken.png"));
  const Finished nowhere = trainctl(folder, {"predict", "runs/pictures", "nowhere.png"});
  CHECK(nowhere.code == 3);
  CHECK(contains(nowhere.errors, "nowhere.png: does not exist"));
  const Finished kind = trainctl(folder, {"predict", "runs/pictures", "held/dark", "--out", "p.txt"});
  CHECK(kind.code == 2);
  CHECK(contains(kind.errors, "ends in none of .csv, .jsonl and .npy"));
  const Finished none = trainctl(folder, {"predict", "held", "held/dark"});
  CHECK(none.code == 2);
  CHECK(contains(none.errors, "is not a run directory"));
}

TEST_CASE("predict reads tables with the words and statistics of the training split") {
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

TEST_CASE("predict skips files that a run skips, and ends if its reader does") {
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
}

TEST_CASE("predict with an autoencoder writes its output images, and reports their bounds") {
  const Folder folder;
  for (const char* kind : {"a", "b"}) {
    for (int i = 0; i < 8; ++i) {
      folder.write(format("images/{}/{}.png", kind, i),
                   png(9, 7, 2, random_bytes(9 * 7 * 3, static_cast<unsigned>(i))));
    }
  }
  const std::string config = folder.write("pixels.yaml", R"(
data:
  dataset: image_folder
  path: images
  on_error: skip
  label_mode: input
  transform: [{normalize: {mean: [100, 120, 140], std: [50, 60, 70]}}]
model: {layers: [{conv2d: {filters: 3, kernel_size: 3, padding: same}}]}
train: {batch_size: 8, epochs: 20, loss: mean_squared_error, optimizer: {name: adam, learning_rate: 0.02}}
)");
  train(folder, config);
  folder.write("images/b/2.png", "no image");
  predicted(folder, {"runs/pixels", "images", "--out", "values.npy"});
  const std::string bytes = read_file(folder / "values.npy");
  CHECK(contains(bytes.substr(0, 128), "'shape': (16, 9, 7, 3)"));
  const std::size_t each = 9 * 7 * 3;
  REQUIRE(bytes.size() == 128 + 16 * each * sizeof(float));
  const Rows rows = rows_of(predicted(folder, {"runs/pixels", "images", "--out", "given", "--ranks", "2"}));
  REQUIRE(rows.size() == 17);
  CHECK(rows[0] == std::vector<std::string>{"input", "mean", "min", "max"});
  CHECK(rows[11] == std::vector<std::string>{"images/b/2.png", "", ""});
  CHECK_FALSE(fs::exists(folder / "given/b/2.png"));
  const std::array<double, 3> mean{100, 120, 140}, deviation{50, 60, 70};
  for (const std::size_t i : {std::size_t{3}, std::size_t{15}}) {
    std::vector<float> values(each);
    std::memcpy(values.data(), bytes.data() + 128 + i * each * sizeof(float), each * sizeof(float));
    CHECK(std::stod(rows[i + 1][2]) == Approx(*std::min_element(values.begin(), values.end())));
    CHECK(std::stod(rows[i + 1][3]) == Approx(*std::max_element(values.begin(), values.end())));
    Sample image;
    const std::string file = read_file(folder / format("given/{}/{}.png", i < 8 ? "a" : "b", i % 8));
    decode_sample(reinterpret_cast<const std::byte*>(file.data()), std::ssize(file), 3, "given", image);
    REQUIRE(image.shape == Shape{9, 7, 3});
    const auto* pixels = static_cast<const std::uint8_t*>(image.values);
    for (std::size_t k = 0; k < each; ++k) {
      const double stored = std::clamp(values[k] * deviation[k % 3] + mean[k % 3], 0.0, 255.0);
      CHECK(std::abs(pixels[k] - stored) < 0.51);
    }
  }

  const Finished twice = trainctl(folder, {"predict", "runs/pixels", "images/a", "images/b/3.png", "--out", "given"});
  CHECK(twice.code == 2);
  CHECK(contains(twice.errors, "'3.png' and another input would both become 3.png"));
  const std::string image = read_file(folder / "images/b/3.png");
  const Finished over = trainctl(folder, {"predict", "runs/pixels", "images/b/3.png", "--out", "images/b"});
  CHECK(over.code == 2);
  CHECK(contains(over.errors, "images/b/3.png is an input and would be overwritten"));
  CHECK(read_file(folder / "images/b/3.png") == image);
  const Json document = Json::parse(predicted(folder, {"runs/pixels", "images/a", "--json", "--out", "more"}));
  CHECK(document["predictions"][3]["max"].get<double>() == Approx(std::stod(rows[4][3])));
  CHECK(fs::exists(folder / "more/7.png"));
}

TEST_CASE("predict reports the class of each position of a sequence of tokens") {
  const Folder folder;
  std::mt19937 random(21);
  std::vector<std::int64_t> tokens, tags;
  for (int i = 0; i < 90 * 6; ++i) {
    tokens.push_back(static_cast<std::int64_t>(random() % 20));
    tags.push_back(random() % 10 == 0 ? static_cast<std::int64_t>(random() % 3) : tokens.back() % 3);
  }
  folder.write("x.npy", npy("<i8", "(90, 6)", raw(tokens)));
  folder.write("y.npy", npy("<i8", "(90, 6)", raw(tags)));
  const std::string config = folder.write("tags.yaml", R"(
data: {dataset: npy, x: x.npy, y: y.npy}
model: {layers: [{embedding: {input_dim: 20, output_dim: 8}}, {dense: 3}]}
train: {batch_size: 10, epochs: 12, loss: sparse_categorical_crossentropy, metrics: [accuracy], optimizer: {name: adam, learning_rate: 0.02}}
)");
  train(folder, config);
  const double accuracy = accuracy_by_eval(folder, config, "training");
  CHECK(accuracy > 0.8);
  fs::remove(folder / "y.npy");
  const Rows rows = rows_of(predicted(folder, {"runs/tags", "x.npy", "--ranks", "2"}));
  REQUIRE(rows.size() == 91);
  CHECK(rows[0] == std::vector<std::string>{"input", "prediction_0", "prediction_1", "prediction_2", "prediction_3",
                                            "prediction_4", "prediction_5"});
  double right = 0;
  for (std::size_t i = 0; i < 90; ++i) {
    for (std::size_t k = 0; k < 6; ++k) right += rows[i + 1][k + 1] == std::to_string(tags[i * 6 + k]) ? 1 : 0;
  }
  CHECK(right / (90 * 6) == Approx(accuracy));
  const Json lines = Json::parse(predicted(folder, {"runs/tags", "x.npy", "--json"}));
  CHECK(lines["predictions"][4]["predictions"][5] == rows[5][6]);
  predicted(folder, {"runs/tags", "x.npy", "--out", "p.npy"});
  const std::string bytes = read_file(folder / "p.npy");
  CHECK(contains(bytes.substr(0, 128), "'shape': (90, 6, 3)"));
  for (std::size_t step = 0; step < 90 * 6; ++step) {  // the softmax of each is part of the loss
    std::array<float, 3> classes{};
    std::memcpy(classes.data(), bytes.data() + 128 + step * sizeof classes, sizeof classes);
    CHECK(classes[0] + classes[1] + classes[2] == Approx(1).epsilon(1e-5));
  }

  folder.write("values.npy", npy("<f4", "(2, 6)", raw(std::vector<float>(12, 0.5f))));
  folder.write("table.csv", "1,2,3,4,5,6\n");
  folder.write("large.npy", npy("<i8", "(1, 6)", raw(std::vector<std::int64_t>(6, 20))));
  for (const auto& [file, message] :
       {std::pair{"values.npy", "values.npy: holds values, but the network reads tokens"},
        std::pair{"table.csv", "give an .npy file whose samples are 6 tokens, whole numbers below 20 each"},
        std::pair{"large.npy", "holds token 20, and the embedding has 0 to 19"}, std::pair{"none.npy", "none.npy"},
        std::pair{"none.csv", "none.csv: does not exist"}}) {
    const Finished wrong = trainctl(folder, {"predict", "runs/tags", file});
    CAPTURE(file, wrong.errors);
    CHECK(wrong.code == 3);
    CHECK(contains(wrong.errors, message));
  }
  const Finished pictures = trainctl(folder, {"predict", "runs/tags", "x.npy", "--out", "masks"});
  CHECK(pictures.code == 2);
  CHECK(contains(pictures.errors, "a folder is for predictions of pixels"));
}

TEST_CASE("predict on a terminal prints a table on any number of ranks, and CSV into a pipe") {
  if (std::system("command -v script > /dev/null") != 0) {
    WARN("script is not installed");
    return;
  }
  const Folder folder;
  folder.write("x.npy", npy("<f4", "(40, 2)", raw(std::vector<float>(80, 0.5f))));
  folder.write("y.npy", npy("<i8", "(40,)", raw(std::vector<std::int64_t>(40, 1))));
  train(folder, folder.write("few.yaml", R"(
data: {dataset: npy, x: x.npy, y: y.npy, classes: 3}
model: {layers: [{dense: {units: 3, activation: softmax}}]}
train: {batch_size: 20, epochs: 1, loss: sparse_categorical_crossentropy, optimizer: adam}
)"));
  for (const char* ranks : {"1", "2"}) {
    const std::string predict = format("{} predict runs/few x.npy --quiet --ranks {}", TRAINCTL_BINARY, ranks);
    const std::string draw =
        format("cd '{}' && TERM=xterm script -qec '{}' drawn > shown < /dev/null", folder.path().string(), predict);
    CHECK(std::system(draw.c_str()) == 0);
    const std::string drawn = read_file(folder / "drawn");
    CAPTURE(ranks, drawn);
    CHECK(contains(drawn, "input  prediction  probabilities"));
    CHECK_FALSE(contains(drawn, "input,prediction"));
    const std::string pipe = format("cd '{}' && TERM=xterm script -qec '{} > piped' drawn > shown < /dev/null",
                                    folder.path().string(), predict);
    CHECK(std::system(pipe.c_str()) == 0);
    CHECK(contains(read_file(folder / "piped"), "input,prediction,0,1,2\n0,"));
  }
}

TEST_CASE("outputs without a loss are predicted as classes if they end in a softmax, and otherwise as values") {
  const Folder folder;
  std::mt19937 random(31);
  std::normal_distribution<float> normal;
  std::vector<float> x(20 * 4);
  std::generate(x.begin(), x.end(), [&] { return normal(random); });
  folder.write("x.npy", npy("<f4", "(20, 4)", raw(x)));
  const std::string config = folder.write("config.yaml", R"(name: free
data: {dataset: npy, x: x.npy}
model:
  layers:
    - dense: {name: kind, units: 3, activation: softmax}
    - dense: {name: size, from: input, units: 2}
  outputs: [kind, size]
  add_loss: {sure: {from: [kind, size], inputs: [p, s], expression: '-log(p[:, 0]) + mean(square(s), axis=1)'}}
train: {epochs: 1, batch_size: 10, loss: {kind: none, size: none}, optimizer: sgd}
)");
  train(folder, config);
  const Rows rows = rows_of(predicted(folder, {config, "x.npy", "--format", "csv"}));
  REQUIRE(rows.size() == 21);
  CHECK(rows[0] == std::vector<std::string>{"input", "kind/prediction", "kind/0", "kind/1", "kind/2", "size/value_0",
                                            "size/value_1"});
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const std::array<double, 3> shares{std::stod(rows[i][2]), std::stod(rows[i][3]), std::stod(rows[i][4])};
    CHECK(shares[0] + shares[1] + shares[2] == Approx(1));
    CHECK(std::stoi(rows[i][1]) == std::max_element(shares.begin(), shares.end()) - shares.begin());
  }
}

}  // namespace trainctl::test::predict_test
