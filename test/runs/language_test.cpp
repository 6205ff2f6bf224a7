// Tests language models on text: training on one rank as on two, a resume in the middle of an epoch, and every token
// of the validation text judged once.
#include <cmath>
#include <filesystem>
#include <random>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/files.h"

namespace trainctl::test::language_run_test {
namespace {

// Sentences of a small language: which words may follow a word is fixed, so that a network can learn it.
std::string sentences(std::size_t bytes, unsigned seed) {
  const std::vector<std::string> subjects = {"the cat", "a dog", "one bird"}, verbs = {"sees", "likes", "follows"};
  std::mt19937 random(seed);
  std::string text;
  while (text.size() < bytes) {
    text += subjects[random() % 3] + " " + verbs[random() % 3] + " " + subjects[random() % 3] + ".\n";
  }
  return text;
}

std::string config_of(const Folder& folder, const std::string& data, const std::string& train) {
  for (unsigned i = 0; i < 5; ++i) folder.write(format("corpus/{}.txt", i), sentences(3000, i));
  folder.write("held/out.md", sentences(1500, 9));
  return folder.write("language.yaml", format(R"(
data: {{dataset: text, path: corpus, positions: 24, validation: {{path: held}}{}}}
model:
  layers:
    - embedding: {{input_dim: 257, output_dim: 16}}
    - gru: {{units: 48, return_sequences: true}}
    - dense: {{units: 257}}
train: {{batch_size: 20, epochs: 4, loss: {{name: sparse_categorical_crossentropy, from_logits: true}},
        metrics: [accuracy], optimizer: {{name: adam, learning_rate: 0.01}}{}}}
log: {{every: 1 steps}}
checkpoint: {{every: 7 steps, keep: 50}}
)",
                                              data, train));
}

double loss_of(const Json& epoch, const char* split = "train") { return epoch[split]["loss"].get<double>(); }

TEST_CASE("a language model learns from a folder of text, on one rank as on two") {
  const Folder folder;
  const std::string config = config_of(folder, "", "");
  const Finished checked = trainctl(folder, {"check", config});
  INFO(checked.errors);
  REQUIRE(checked.code == 0);
  std::vector<Json> epochs[2];
  for (const int ranks : {1, 2}) {
    const std::string directory = folder / format("ranks{}", ranks);
    const Finished run = trainctl(folder, {"run", config, "--ranks", std::to_string(ranks), "--run-dir", directory});
    INFO(tail(run.errors));
    REQUIRE(run.code == 0);
    epochs[ranks - 1] = events(directory, "epoch");
    REQUIRE(epochs[ranks - 1].size() == 4);
  }
  CHECK(loss_of(epochs[0][0]) < std::log(257.0));
  CHECK(loss_of(epochs[0][3]) < 0.6 * loss_of(epochs[0][0]));
  CHECK(loss_of(epochs[0][3], "validation") < 1.6);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(epochs[0][i]["step"] == epochs[1][i]["step"]);
    CHECK(loss_of(epochs[1][i]) == Approx(loss_of(epochs[0][i])).epsilon(2e-3));
    CHECK(loss_of(epochs[1][i], "validation") == Approx(loss_of(epochs[0][i], "validation")).epsilon(1e-2));
  }

  // With another stride the same tokens are judged, each once, and the mean over them is nearly the same.
  const auto validation = [&](const std::string& stride) {
    const Finished run = trainctl(
        folder, {"eval", config, "--run", folder / "ranks1", "--json", "--set", "data.evaluation_stride=" + stride});
    INFO(tail(run.errors));
    REQUIRE(run.code == 0);
    return Json::parse(run.out)["loss"].get<double>();
  };
  const double apart = validation("24"), overlapping = validation("6");
  CHECK(overlapping != apart);
  CHECK(overlapping == Approx(apart).epsilon(0.1));
}

TEST_CASE("bits_per_byte counts the bytes of the tokens that are judged") {
  const Folder folder;
  const std::string config = config_of(folder, "", ", max_steps: 6");
  for (const char* ranks : {"1", "2"}) {
    const std::string directory = folder / ranks;
    const Finished run = trainctl(folder, {"run", config, "--ranks", ranks, "--run-dir", directory, "--set",
                                           "train.metrics=[accuracy, bits_per_byte]", "--set", "train.epochs=1"});
    INFO(tail(run.errors));
    REQUIRE(run.code == 0);
    const Json results = events(directory, "epoch").back()["validation"];
    // All bytes of the text but the first, and the end of the document, which is no text.
    const double bytes = static_cast<double>(sentences(1500, 9).size()) - 1;
    CHECK(results["bits_per_byte"].get<double>() ==
          Approx(results["loss"].get<double>() * (bytes + 1) / bytes / std::log(2.0)).epsilon(1e-5));
  }
  const Finished refused = trainctl(folder, {"check", std::string(TRAINCTL_SOURCE_DIR) + "/configs/mnist-mlp.yaml",
                                             "--set", "train.metrics=[bits_per_byte]"});
  CHECK(refused.code != 0);
  CHECK(refused.errors.find("bits_per_byte needs tokens as targets whose text is known") != std::string::npos);
}

TEST_CASE("a language model that is stopped in the middle of an epoch ends with the bits of one that is not") {
  const Folder folder;
  const std::string config = config_of(folder, "", ", max_steps: 70");
  const std::string whole = folder / "whole", part = folder / "part";
  const auto run = [&](const std::string& directory, const std::string& steps) {
    const Finished end =
        trainctl(folder, {"run", config, "--ranks", "2", "--run-dir", directory, "--set", "train.max_steps=" + steps});
    INFO(tail(end.errors));
    REQUIRE(end.code == 0);
  };
  run(whole, "70");
  run(part, "17");  // an epoch has 32 steps
  run(part, "70");
  CHECK(events(part, "end").back()["weights_sha256"] == events(whole, "end").back()["weights_sha256"]);
  const auto losses = step_losses(whole);
  CHECK(step_losses(part) == losses);
  CHECK(losses.size() == 70);
  CHECK(events(part, "epoch").back()["train"] == events(whole, "epoch").back()["train"]);
}

TEST_CASE("ranks that a launcher starts tokenize the text once, before they meet") {
  namespace fs = std::filesystem;
  const Folder folder;
  const std::string config = config_of(folder, ", cache_path: tokens", ", max_steps: 3");
  const Finished run = trainctl(folder, {"run", config, "--ranks", "2", "--run-dir", folder / "run"});
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  const auto token_files = [&] {
    int files = 0;
    for (const auto& entry : fs::directory_iterator(folder / "tokens")) {
      CHECK(entry.path().extension() == "");  // no lock remains
      files += entry.path().filename().string().starts_with("tokens-") ? 1 : 0;
    }
    return files;
  };
  CHECK(token_files() == 2);  // of the training text and of the validation text
  folder.write("corpus/bad.jsonl", "{\"text\": 1}\n");
  const Finished refused = trainctl(folder, {"run", config, "--ranks", "2", "--run-dir", folder / "other"});
  CHECK(refused.code == 3);
  CHECK(count(refused.errors, "bad.jsonl:1: the value of 'text' is not a text") == 1);
  CHECK_FALSE(fs::exists(folder / "other"));
  CHECK(token_files() == 2);
}

TEST_CASE("a model with the numbers of documents as a second input is trained") {
  const Folder folder;
  config_of(folder, "", "");
  const std::string config = folder.write("documents.yaml", R"(
data: {dataset: text, path: corpus, positions: 24, document_numbers: true, validation: {split: 0.2}}
model:
  inputs: [tokens, documents]
  layers:
    - embedding: {name: words, from: tokens, input_dim: 257, output_dim: 16}
    - embedding: {name: numbers, from: documents, input_dim: 24, output_dim: 16}
    - add: {from: [words, numbers]}
    - dense: {units: 257}
train: {batch_size: 20, epochs: 2, loss: {name: sparse_categorical_crossentropy, from_logits: true},
        optimizer: {name: adam, learning_rate: 0.01}}
)");
  const Finished run = trainctl(folder, {"run", config, "--ranks", "2", "--run-dir", folder / "run"});
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  const auto epochs = events(folder / "run", "epoch");
  CHECK(loss_of(epochs[1]) < loss_of(epochs[0]));
}

}  // namespace
}  // namespace trainctl::test::language_run_test
