// Tests whole runs of networks whose outputs leave out different positions: on any number of ranks and with gradient
// accumulation they learn what one rank learns.
#include <random>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/files.h"

namespace trainctl::test::counted_outputs_run_test {
namespace {

constexpr std::int64_t samples = 70, positions = 8;

// Token numbers with padding at the end, targets of positions of which many are -100, and classes of samples. A batch
// of 16 samples and a last one of 6 samples have other numbers of positions on each rank.
void write_arrays(const Folder& folder) {
  std::mt19937 random(5);
  std::vector<std::int64_t> tokens, tags, words, kind;
  for (std::int64_t i = 0; i < samples; ++i) {
    const auto length = static_cast<std::int64_t>(1 + random() % positions);
    for (std::int64_t p = 0; p < positions; ++p) {
      const auto token = static_cast<std::int64_t>(1 + random() % 11);
      tokens.push_back(p < length ? token : 0);
      tags.push_back(token % 4);
      words.push_back(random() % 3 == 0 ? (token + 1) % 12 : -100);
    }
    kind.push_back(length % 3);
  }
  folder.write("tokens.npy", npy("<i8", format("({}, {})", samples, positions), raw(tokens)));
  folder.write("tags.npy", npy("<i8", format("({}, {})", samples, positions), raw(tags)));
  folder.write("words.npy", npy("<i8", format("({}, {})", samples, positions), raw(words)));
  folder.write("kind.npy", npy("<i8", format("({},)", samples), raw(kind)));
}

std::string config_of(const Folder& folder, bool masks) {
  write_arrays(folder);
  return folder.write("run.yaml", format(R"(
data: {{dataset: npy, x: tokens.npy, y: {{tags: tags.npy, words: words.npy, kind: kind.npy}}}}
model:
  layers:
    - embedding: {{name: table, input_dim: 12, output_dim: 16, mask_zero: {}}}
    - dense: {{name: hidden, units: 32, activation: tanh, kernel_regularizer: {{l2: 0.01}}}}
    - dense: {{name: tags, units: 4, activation: softmax}}
    - lambda: {{name: shown, from: hidden, expression: 1 * x}}
    - dense: {{name: more, units: 24, activation: tanh}}
    - dense: {{name: words, units: 12, activation: softmax}}
    - flatten: {{from: more}}
    - dense: {{name: kind, units: 3, activation: softmax}}
  outputs: [tags, words, kind]
train:
  batch_size: 16
  epochs: 3
  loss:
    tags: sparse_categorical_crossentropy
    words: {{name: sparse_categorical_crossentropy, ignore_index: -100}}
    kind: sparse_categorical_crossentropy
  loss_weights: {{words: 0.5}}
  metrics: {{tags: [accuracy], words: [accuracy, perplexity]}}
  optimizer: {{name: sgd, learning_rate: 0.1}}
log: {{every: 1 steps}}
)",
                                         masks));
}

std::string train(const Folder& folder, const std::string& config, int ranks, std::vector<std::string> more) {
  static int number = 0;
  const std::string directory = folder / format("run{}", ++number);
  std::vector<std::string> arguments{"run", config, "--ranks", std::to_string(ranks), "--run-dir", directory};
  for (std::string& setting : more) arguments.insert(arguments.end(), {"--set", std::move(setting)});
  const Finished run = trainctl(folder, arguments);
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  return directory;
}

void compare(const std::string& found, const std::string& expected) {
  const auto losses = step_losses(found), wanted = step_losses(expected);
  REQUIRE(losses.size() == 15);
  for (const auto& [step, loss] : losses) {
    CAPTURE(step);
    CHECK(loss == Approx(wanted.at(step)).epsilon(1e-4));
  }
  const Json last = events(found, "epoch").back()["train"], other = events(expected, "epoch").back()["train"];
  for (const char* name :
       {"tags_loss", "words_loss", "kind_loss", "tags_accuracy", "words_accuracy", "words_perplexity"}) {
    CAPTURE(name);
    CHECK(last[name].get<double>() == Approx(other[name].get<double>()).epsilon(1e-3));
  }
  CHECK(last["loss"].get<double>() > last["tags_loss"].get<double>() + 0.5 * last["words_loss"].get<double>());
}

}  // namespace

TEST_CASE("outputs that leave out different positions learn the same on any number of ranks", "[counts]") {
  const Folder folder;
  const std::string config = config_of(folder, true);
  const std::string alone = train(folder, config, 1, {});
  compare(train(folder, config, 1, {"train.gradient_accumulation=4"}), alone);
  compare(train(folder, config, 2, {}), alone);
  compare(train(folder, config, 3, {"strategy.shard=optimizer"}), alone);
  compare(train(folder, config, 2, {"train.gradient_accumulation=2", "strategy.shard=gradients"}), alone);
  compare(train(folder, config, 4, {"strategy={tensor: 2, shard: parameters}"}), alone);
}

TEST_CASE("a pipeline counts the positions that outputs leave out", "[counts]") {
  const bool masks = GENERATE(false, true);
  CAPTURE(masks);
  const Folder folder;
  const std::string config = config_of(folder, masks);
  const std::string alone = train(folder, config, 1, {});
  compare(train(folder, config, 2, {"strategy={pipeline: 2, micro_batches: 2}"}), alone);
  compare(train(folder, config, 4, {"strategy={pipeline: 2, micro_batches: 2}"}), alone);
}

TEST_CASE("logical shards cannot count the positions of outputs", "[counts]") {
  const Folder folder;
  const std::string config = config_of(folder, true);
  const auto error_of = [&](int ranks, const std::string& strategy) {
    const Finished run = trainctl(folder, {"check", config, "--ranks", std::to_string(ranks), "--set", strategy});
    CHECK(run.code != 0);
    return run.errors;
  };
  CHECK(error_of(2, "strategy={reproducible: {shards: 2}}").find("strategy.reproducible cannot count") !=
        std::string::npos);
}

}  // namespace trainctl::test::counted_outputs_run_test
