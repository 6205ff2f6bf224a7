// Tests a classifier of texts: training on one rank as on two, and predictions with the vocabulary that the run keeps.
#include <filesystem>
#include <random>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/files.h"

namespace trainctl::test::text_classification_run_test {
namespace {

// A review whose words tell its class, among words that do not.
std::string review(bool good, unsigned seed) {
  const std::vector<std::string> words[] = {{"dull", "awful", "boring"}, {"great", "lovely", "fine"}};
  const std::vector<std::string> others = {"the", "film", "was", "and", "with", "a", "story"};
  std::mt19937 random(seed);
  std::string text;
  for (int i = 0; i < 10; ++i) {
    text += i == static_cast<int>(seed % 10) || random() % 5 == 0 ? words[good][random() % 3] : others[random() % 7];
    text += i == 4 ? ", " : " ";
  }
  return text;
}

const std::string model_and_training = R"(
model:
  layers:
    - embedding: {input_dim: 40, output_dim: 8}
    - global_average_pooling1d
    - dense: {units: 2, activation: softmax}
train: {batch_size: 16, epochs: 12, loss: sparse_categorical_crossentropy, metrics: [accuracy],
        optimizer: {name: adam, learning_rate: 0.03}}
)";

TEST_CASE("a classifier of texts learns, on one rank as on two, and predicts texts with the run's vocabulary") {
  const Folder folder;
  std::string lines;
  for (unsigned i = 0; i < 240; ++i) {
    const bool good = i % 2 == 0;
    folder.write(format("reviews/{}/{}.txt", good ? "good" : "bad", i), review(good, i));
    lines += json_text(Json{{"text", review(good, i)}, {"label", good ? "good" : "bad"}}) + "\n";
  }
  folder.write("reviews.jsonl", lines);
  const std::string keys = "positions: 12, validation: {split: 0.2}}\n";
  const std::string config =
      folder.write("c.yaml", "data: {dataset: text_classification, path: reviews, " + keys + model_and_training);
  folder.write("j.yaml", "data: {dataset: text_classification, path: reviews.jsonl, " + keys + model_and_training);
  double losses[3];
  int n = 0;
  for (const auto& [file, ranks] : {std::pair("c.yaml", 1), {"c.yaml", 2}, {"j.yaml", 2}}) {
    const std::string directory = folder / format("run{}", n);
    const Finished run = trainctl(folder, {"run", file, "--ranks", std::to_string(ranks), "--run-dir", directory});
    INFO(tail(run.errors));
    REQUIRE(run.code == 0);
    const Json last = events(directory, "epoch").back();
    CHECK(last["validation"]["accuracy"].get<double>() > 0.95);
    losses[n++] = last["train"]["loss"];
  }
  CHECK(losses[1] == Approx(losses[0]).epsilon(5e-3));

  std::filesystem::remove_all(folder / "reviews");  // the run keeps its vocabulary
  const std::string text = folder.write("new.txt", "a great story, GREAT film\n\nBoring. unknown words; dull\n");
  const Finished predicted = trainctl(folder, {"predict", folder / "run1", text, "--format", "jsonl"});
  INFO(tail(predicted.errors));
  REQUIRE(predicted.code == 0);
  const std::size_t second = predicted.out.find('\n') + 1, third = predicted.out.find('\n', second) + 1;
  const Json rows[] = {Json::parse(predicted.out.substr(0, second)),
                       Json::parse(predicted.out.substr(second, third - second)),
                       Json::parse(predicted.out.substr(third))};
  CHECK(rows[0].at("prediction") == "good");
  CHECK(rows[1].at("input") == "1");  // the empty line
  CHECK(rows[1].contains("prediction"));
  CHECK(rows[2].at("prediction") == "bad");
  CHECK(rows[2].at("input") == "2");
}

}  // namespace
}  // namespace trainctl::test::text_classification_run_test
