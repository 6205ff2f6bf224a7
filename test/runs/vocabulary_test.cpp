// Tests whole runs of a language model whose ranks split the vocabulary and the positions: they learn what one rank
// learns, and one rank resumes from their checkpoints.
#include <random>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/files.h"

namespace trainctl::test::vocabulary_run_test {
namespace {

constexpr std::size_t steps = 12;

// A GPT on bytes. No number of ranks that is tested divides its 257 tokens.
std::string config_of(const Folder& folder) {
  std::mt19937 random(3);
  std::string text;
  while (text.size() < 6000) text += static_cast<char>('a' + (text.size() * text.size() + random() % 3) % 26);
  folder.write("corpus/text.txt", text);
  return folder.write("gpt.yaml", R"(
data: {dataset: text, path: corpus, positions: 32, validation: {split: 0.2}}
model:
  preset: gpt2
  with: {vocabulary: 257, positions: 32, layers: 4, heads: 4, head_size: 16, width: 64, mlp: 256, dropout: 0.1}
train: {batch_size: 8, max_steps: 12, metrics: [accuracy, perplexity, bits_per_byte],
        loss: {name: sparse_categorical_crossentropy, from_logits: true, label_smoothing: 0.1, z_loss: 1e-3},
        optimizer: {name: adamw, learning_rate: 1e-3}, clip_norm: 1}
log: {every: 1 steps}
checkpoint: {every: 6 steps, keep: 9}
)");
}

// Trains with the strategy; returns the run directory.
std::string train_on(const Folder& folder, const std::string& config, int ranks, const std::string& strategy,
                     std::vector<std::string> further = {}) {
  static int number = 0;
  const std::string directory = folder / format("run-{}", ++number);
  std::vector<std::string> arguments = {
      "run",     config,       "--ranks", std::to_string(ranks), "--set", "strategy=" + strategy, "--run-dir",
      directory, "--progress", "none"};
  arguments.insert(arguments.end(), further.begin(), further.end());
  const Finished run = trainctl(folder, arguments);
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  return directory;
}

void compare(const std::string& one, const std::string& many, std::size_t expected_steps, double tolerance) {
  const auto expected = step_losses(one), found = step_losses(many);
  REQUIRE(found.size() == expected_steps);
  for (const auto& [step, loss] : found) {
    CAPTURE(many, step);
    CHECK(loss == Approx(expected.at(step)).epsilon(tolerance));
  }
  const Json epoch = events(one, "epoch").back(), other = events(many, "epoch").back();
  for (const char* value : {"loss", "perplexity", "bits_per_byte"}) {
    CHECK(other["validation"][value].get<double>() ==
          Approx(epoch["validation"][value].get<double>()).epsilon(10 * tolerance));
  }
}

}  // namespace

TEST_CASE("ranks that split the vocabulary and the positions learn what one rank learns") {
  const Folder folder;
  const std::string config = config_of(folder), one = train_on(folder, config, 1, "{}");
  const std::pair<int, const char*> strategies[] = {
      {2, "{tensor: 2}"},
      {2, "{tensor: 2, sequence_parallel: true, recompute: blocks}"},
      {4, "{tensor: 4, sequence_parallel: true}"},
      {4, "{tensor: 2, pipeline: 2, sequence_parallel: true, micro_batches: 2}"},
      {4, "{tensor: 2, data: 2, sequence_parallel: true, shard: parameters}"},
  };
  for (const auto& [ranks, strategy] : strategies) {
    CAPTURE(strategy);
    const std::string many = train_on(folder, config, ranks, strategy);
    compare(one, many, steps, 1e-5);
    compare(one, train_on(folder, config, 1, "{}", {"--resume", many + "/checkpoints/step-00000006"}), steps / 2, 1e-5);
  }
}

TEST_CASE("check shows that ranks with some positions need less memory") {
  const Folder folder;
  const std::string config = config_of(folder);
  const auto memory = [&](const std::string& strategy) {
    const Finished found =
        trainctl(folder, {"check", config, "--ranks", "4", "--set", "strategy=" + strategy, "--json"});
    INFO(tail(found.errors));
    REQUIRE(found.code == 0);
    return Json::parse(found.out).at("arena_bytes").get<double>();
  };
  CHECK(memory("{tensor: 4, sequence_parallel: true}") < 0.7 * memory("{tensor: 4}"));
}

TEST_CASE("options of shared layers and parameters without them are refused with their line") {
  const Folder folder;
  const std::string config = config_of(folder);
  const std::pair<const char*, const char*> refused[] = {
      {"strategy={sequence_parallel: true}", "set `tensor` too"},
      {"strategy={parameter_dtype: bfloat16}", "set `shard` too"},
  };
  for (const auto& [setting, message] : refused) {
    const Finished check = trainctl(folder, {"check", config, "--ranks", "2", "--set", setting});
    CAPTURE(setting, check.errors);
    CHECK(check.code == 2);
    CHECK(contains(check.errors, message));
  }
}

}  // namespace trainctl::test::vocabulary_run_test
