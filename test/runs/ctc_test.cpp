// Tests networks with the loss ctc: reading texts in images on one rank as on two, the same bits in reproducible mode,
// decoded predictions, and the messages about targets that cannot be learned.
#include <filesystem>
#include <random>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/files.h"

namespace trainctl::test::ctc_run_test {
namespace {

constexpr int width = 48, height = 8;

// The characters of all texts; the last one has two bytes.
std::vector<std::string> characters() { return {"2", "b", "x", "\xc3\xa9"}; }

// A text of two to four characters.
std::vector<int> text_of(unsigned seed) {
  std::mt19937 random(seed);
  std::vector<int> text(2 + random() % 3);
  for (int& character : text) character = static_cast<int>(random() % 4);
  return text;
}

std::string spelled(const std::vector<int>& text) {
  std::string spelled;
  for (const int character : text) spelled += characters()[static_cast<std::size_t>(character)];
  return spelled;
}

// An image of a text: each character is a few columns with a bright band at its own height, after some dark columns.
std::string image_of(const std::vector<int>& text, unsigned seed) {
  std::mt19937 random(seed + 1000);
  std::string pixels(static_cast<std::size_t>(width * height), '\0');
  for (char& pixel : pixels) pixel = static_cast<char>(random() % 40);
  int column = static_cast<int>(random() % 4);
  for (const int character : text) {
    column += 3 + static_cast<int>(random() % 3);
    const int last = column + 4 + static_cast<int>(random() % 2);
    for (; column < last; ++column) {
      for (int row = 2 * character; row < 2 * character + 2; ++row) {
        pixels[static_cast<std::size_t>(row * width + column)] = static_cast<char>(200);
      }
    }
  }
  return png(height, width, 0, pixels);
}

// Writes images and the table of their texts.
void write_images(const Folder& folder, unsigned count) {
  std::string table = "image,text\n";
  for (unsigned i = 0; i < count; ++i) {
    folder.write(format("words/{}.png", i), image_of(text_of(i), i));
    table += format("{}.png,{}\n", i, spelled(text_of(i)));
  }
  folder.write("words/words.csv", table);
}

const std::string data = R"(
data: {dataset: image_text, path: words/words.csv, shape: [8, 48, 1], validation: {split: 0.2},
       transform: [rescale: 1/255]}
)";
std::string model(int steps) {
  return format(R"(
model:
  layers:
    - permute: [2, 1, 3]
    - reshape: [{}, -1]
    - conv1d: {{filters: 24, kernel_size: 5, padding: same, activation: relu}}
    - dense: {{units: 5}}
)",
                steps);
}
std::string train(const std::string& rest) {
  return "train: {batch_size: 16, loss: ctc, metrics: [edit_distance, sequence_accuracy], " + rest + "}\n";
}

TEST_CASE("a network learns to read texts in images, on one rank as on two, and predicts texts") {
  const Folder folder;
  write_images(folder, 200);
  const std::string config =
      folder.write("c.yaml", data + model(24) + train("epochs: 30, optimizer: {name: adam, learning_rate: 0.01}"));
  const Finished checked = trainctl(folder, {"check", config});
  INFO(tail(checked.errors));
  REQUIRE(checked.code == 0);
  Json last[2];
  for (int ranks = 1; ranks <= 2; ++ranks) {
    const std::string directory = folder / format("run{}", ranks);
    const Finished run = trainctl(folder, {"run", config, "--ranks", std::to_string(ranks), "--run-dir", directory});
    INFO(tail(run.errors));
    REQUIRE(run.code == 0);
    last[ranks - 1] = events(directory, "epoch").back();
    INFO(last[ranks - 1].dump());
    CHECK(last[ranks - 1]["validation"]["sequence_accuracy"].get<double>() > 0.9);
    CHECK(last[ranks - 1]["validation"]["edit_distance"].get<double>() < 0.05);
    CHECK(step_losses(directory).begin()->second > 5);
  }
  const auto first_losses = [&](int ranks) { return step_losses(folder / format("run{}", ranks)); };
  CHECK(first_losses(2).begin()->second == Approx(first_losses(1).begin()->second).epsilon(1e-5));
  CHECK(last[1]["train"]["loss"].get<double>() == Approx(last[0]["train"]["loss"].get<double>()).epsilon(0.02));

  std::filesystem::remove(folder / "words/words.csv");  // the run keeps the characters
  int right = 0;
  for (unsigned i = 500; i < 510; ++i) {
    folder.write("new.png", image_of(text_of(i), i));
    const Finished predicted = trainctl(folder, {"predict", folder / "run2", "new.png", "--format", "jsonl"});
    INFO(tail(predicted.errors));
    REQUIRE(predicted.code == 0);
    right += Json::parse(predicted.out).at("prediction") == spelled(text_of(i)) ? 1 : 0;
  }
  CHECK(right >= 8);
  const Finished as_csv = trainctl(folder, {"predict", folder / "run2", "new.png", "--format", "csv"});
  CHECK(as_csv.out.starts_with("input,prediction\n"));
  const Finished confusion = trainctl(folder, {"eval", config, "--run", folder / "run2", "--confusion"});
  CHECK(contains(confusion.errors, "no loss of this config is for classes"));
}

TEST_CASE("reproducible runs with ctc have the same weights on any number of ranks") {
  const Folder folder;
  write_images(folder, 60);
  const std::string config =
      folder.write("c.yaml", data + model(24) + "strategy: {reproducible: {shards: 4}}\n" +
                                 train("epochs: 2, optimizer: {name: sgd, learning_rate: 0.01}"));
  std::string hash;
  for (const int ranks : {1, 2, 3}) {
    CAPTURE(ranks);
    const std::string directory = folder / std::to_string(ranks);
    const Finished run = trainctl(folder, {"run", config, "--ranks", std::to_string(ranks), "--run-dir", directory});
    INFO(tail(run.errors));
    REQUIRE(run.code == 0);
    const std::string found = events(directory, "end").back().at("weights_sha256");
    if (hash.empty()) hash = found;
    CHECK(found == hash);
  }
}

TEST_CASE("ctc with arrays: rows of class numbers, padded with 0") {
  const Folder folder;
  std::mt19937 random(4);
  std::vector<float> x(40 * 6 * 3);
  for (float& value : x) value = std::normal_distribution<float>()(random);
  std::vector<std::int32_t> y(40 * 4);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = i % 4 < i / 4 % 4 ? 1 + static_cast<std::int32_t>(random() % 4) : 0;
  folder.write("x.npy", npy("<f4", "(40, 6, 3)", raw(x)));
  folder.write("y.npy", npy("<i4", "(40, 4)", raw(y)));
  const std::string arrays =
      "data: {dataset: npy, x: x.npy, y: y.npy}\nmodel: {layers: [{dense: {units: 5, "
      "activation: softmax}}]}\n";
  const std::string config = folder.write("c.yaml", arrays + train("epochs: 1, optimizer: sgd"));
  const Finished run = trainctl(folder, {"run", config, "--ranks", "2", "--run-dir", folder / "run"});
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  const Finished predicted = trainctl(folder, {"predict", folder / "run", "x.npy", "--format", "csv"});
  CHECK(predicted.code == 0);
  CHECK(contains(predicted.out, "input,prediction\n"));
  CHECK(count(predicted.out, "\n") == 41);
}

TEST_CASE("steps that are padding do not change the loss of ctc") {
  const Folder folder;
  std::mt19937 random(5);
  const auto write = [&](const std::string& name, std::size_t steps, const std::vector<std::int32_t>& tokens) {
    std::vector<std::int32_t> x(32 * steps);
    for (std::size_t i = 0; i < tokens.size(); ++i) x[i / 8 * steps + i % 8] = tokens[i];
    folder.write(name, npy("<i4", format("(32, {})", steps), raw(x)));
  };
  std::vector<std::int32_t> tokens(32 * 8), y(32 * 3);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = i % 8 < 5 + i / 8 % 4 ? 1 + static_cast<std::int32_t>(random() % 6) : 0;
  }
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = i % 3 < i / 3 % 4 ? 1 + static_cast<std::int32_t>(random() % 4) : 0;
  write("short.npy", 8, tokens);
  write("long.npy", 13, tokens);
  folder.write("y.npy", npy("<i4", "(32, 3)", raw(y)));
  std::vector<Json> found;
  for (const std::string name : {"short", "long"}) {
    const std::string config = folder.write(
        "c.yaml", format("data: {{dataset: npy, x: {}.npy, y: y.npy, shuffle: false}}\n", name) +
                      "model: {layers: [{embedding: {input_dim: 7, output_dim: 6, mask_zero: true}}, {dense: 5}]}\n" +
                      train("epochs: 2, optimizer: {name: sgd, learning_rate: 0.05}"));
    const Finished run = trainctl(folder, {"run", config, "--ranks", "2", "--run-dir", folder / name});
    INFO(tail(run.errors));
    REQUIRE(run.code == 0);
    found.push_back(events(folder / name, "epoch").back().at("train"));
  }
  for (const char* result : {"loss", "edit_distance", "sequence_accuracy"}) {
    CHECK(found[1].at(result).get<double>() == Approx(found[0].at(result).get<double>()).epsilon(1e-5));
  }
}

TEST_CASE("mistakes with ctc name the line") {
  const Folder folder;
  write_images(folder, 40);
  const auto error_of = [&](const std::string& text) {
    const Finished checked = trainctl(folder, {"check", folder.write("c.yaml", text)});
    CHECK(checked.code != 0);
    return checked.errors;
  };
  const std::string sgd = "epochs: 1, optimizer: sgd";
  CHECK(contains(error_of(data + model(3) + train(sgd)), "words.csv, line "));
  CHECK(contains(error_of(data + model(3) + train(sgd)), "the network ends in 3 steps"));
  CHECK(contains(error_of(data + "model: {layers: [flatten, {dense: {units: 5}}]}\n" + train(sgd)),
                 "ctc needs an output of (steps, classes)"));
  CHECK(contains(error_of(data + model(24) + "train: {batch_size: 16, loss: ctc, metrics: [accuracy], " + sgd + "}\n"),
                 "use edit_distance or sequence_accuracy"));
  CHECK(
      contains(error_of(data + model(24) + "train: {batch_size: 16, loss: {name: ctc, mask_index: 5}, " + sgd + "}\n"),
               "mask_index is 5"));
}

}  // namespace
}  // namespace trainctl::test::ctc_run_test
