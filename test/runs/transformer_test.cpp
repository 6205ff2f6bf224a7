// Tests transformers on text and images: every strategy learns what one rank learns, and attention keeps documents
// apart.
#include <cmath>
#include <random>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/files.h"

namespace trainctl::test::transformer_run_test {
namespace {

// Lines "abcabc...": the same letters again and again, so that attention to the last occurrence predicts the next.
std::string repeated_letters(std::size_t bytes, unsigned seed) {
  std::mt19937 random(seed);
  std::string text;
  while (text.size() < bytes) {
    std::string part;
    for (int i = 0; i < 3; ++i) part += static_cast<char>('a' + random() % 8);
    for (int i = 0; i < 4; ++i) text += part;
    text += "\n";
  }
  return text;
}

std::string config_of(const Folder& folder, const std::string& model, const std::string& data = "") {
  for (unsigned i = 0; i < 4; ++i) folder.write(format("corpus/{}.txt", i), repeated_letters(2500, i));
  return folder.write("transformer.yaml", format(R"(
data: {{dataset: text, path: corpus, positions: 26{}}}
model: {}
train: {{batch_size: 16, max_steps: 20, loss: {{name: sparse_categorical_crossentropy, from_logits: true}},
        optimizer: {{name: adam, learning_rate: 0.003}}}}
log: {{every: 1 steps}}
)",
                                                 data, model));
}

constexpr const char* gpt =
    "{preset: gpt2, with: {vocabulary: 257, positions: 26, layers: 4, heads: 4, head_size: 8, width: 32, mlp: 128, "
    "dropout: 0.1}}";
constexpr const char* llama =
    "{preset: llama, with: {vocabulary: 257, layers: 4, heads: 8, key_heads: 4, head_size: 8, width: 32, mlp: 96, "
    "query_key_norm: 1e-6}}";

constexpr const char* decoder =
    "{layers: [{token_and_position_embedding: {vocabulary_size: 257, sequence_length: 26, embedding_dim: 32}}, "
    "{repeat: "
    "{times: 4, layers: [{transformer_decoder: {intermediate_dim: 128, num_heads: 4, activation: gelu, dropout: 0.1, "
    "normalize_first: true}}]}}, layer_normalization, {dense: 257}]}";

// Random images whose class is the quadrant with the brightest pixels, and a small vision transformer for them.
std::string vision_config(const Folder& folder) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::vector<float> images;
  std::vector<std::int64_t> classes;
  for (int n = 0; n < 64; ++n) {
    const int bright = static_cast<int>(random() % 4);
    classes.push_back(bright);
    for (int y = 0; y < 12; ++y) {
      for (int x = 0; x < 12; ++x) {
        const bool inside = y / 6 == bright / 2 && x / 6 == bright % 2;
        for (int channel = 0; channel < 3; ++channel) images.push_back(normal(random) + (inside ? 1.0f : 0.0f));
      }
    }
  }
  folder.write("x.npy", npy("<f4", "(64, 12, 12, 3)", raw(images)));
  folder.write("y.npy", npy("<i8", "(64,)", raw(classes)));
  return folder.write("vision.yaml", R"(
data: {dataset: npy, x: x.npy, y: y.npy}
model: {preset: vit_s16, with: {classes: 4, patch: 4, layers: 4, heads: 4, head_size: 8, width: 32, mlp: 64, dropout: 0.1,
        stochastic_depth: 0.1}}
train: {batch_size: 16, max_steps: 20, loss: sparse_categorical_crossentropy, optimizer: {name: adam, learning_rate: 0.003}}
log: {every: 1 steps}
)");
}

struct Trained {
  std::vector<double> losses;
  std::string weights;
};

Trained train(const Folder& folder, const std::string& config, int ranks, const std::string& strategy) {
  static int number = 0;
  const std::string directory = folder / format("run{}", ++number);
  const Finished run = trainctl(folder, {"run", config, "--ranks", std::to_string(ranks), "--run-dir", directory,
                                         "--set", "strategy=" + strategy});
  INFO(strategy);
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  Trained result{{}, events(directory, "end").back()["weights_sha256"].get<std::string>()};
  for (const auto& [step, loss] : step_losses(directory)) result.losses.push_back(loss);
  return result;
}

// Trains with every strategy, and compares the losses of all steps with those of one rank. Returns one rank's losses.
std::vector<double> check_strategies(const Folder& folder, const std::string& config) {
  const Trained alone = train(folder, config, 1, "{}");
  REQUIRE(alone.losses.size() == 20);
  CHECK(alone.losses.back() < 0.8 * alone.losses.front());
  struct Case {
    int ranks;
    const char* strategy;
  };
  for (const auto& [ranks, strategy] :
       {Case{2, "{tensor: 2}"}, Case{2, "{pipeline: 2}"}, Case{2, "{shard: parameters}"}, Case{4, "{tensor: 4}"},
        Case{4, "{pipeline: 2, tensor: 2}"}, Case{4, "{shard: parameters, tensor: 2}"}}) {
    CAPTURE(ranks, strategy);
    const Trained together = train(folder, config, ranks, strategy);
    for (std::size_t i = 0; i < alone.losses.size(); ++i) {
      CHECK(together.losses[i] == Approx(alone.losses[i]).epsilon(2e-3));
    }
  }
  const Trained one = train(folder, config, 1, "{reproducible: {shards: 4}}");
  CHECK(train(folder, config, 2, "{reproducible: {shards: 4}}").weights == one.weights);
  CHECK(train(folder, config, 4, "{reproducible: {shards: 4}, shard: parameters}").weights == one.weights);
  return alone.losses;
}

}  // namespace

TEST_CASE("every strategy trains a transformer as one rank does") {
  const char* model = GENERATE(gpt, llama, decoder);
  CAPTURE(model);
  const Folder folder;
  const std::vector<double> losses = check_strategies(folder, config_of(folder, model));
  CHECK(losses.front() == Approx(std::log(257.0)).epsilon(0.05));
}

TEST_CASE("every strategy trains a vision transformer as one rank does") {
  const Folder folder;
  const std::vector<double> losses = check_strategies(folder, vision_config(folder));
  CHECK(losses.front() == Approx(std::log(4.0)).epsilon(0.1));
}

TEST_CASE("every strategy divides the loss by the number of positions that count") {
  const Folder folder;
  std::mt19937 random(5);
  std::string tokens;  // uint16: groups of equal tokens, with padding between them
  const auto add = [&](unsigned token) { tokens += {static_cast<char>(token), '\0'}; };
  while (tokens.size() < 20'000) {
    unsigned group[3];
    for (unsigned& token : group) token = 1 + random() % 8;
    for (int i = 0; i < 12; ++i) add(group[i % 3]);
    for (auto padding = random() % 9; padding > 0; --padding) add(0);
  }
  folder.write("tokens.bin", tokens);
  const std::string config = folder.write("masked.yaml", R"(
data: {dataset: text, path: tokens.bin, positions: 26}
model:
  layers:
    - token_and_position_embedding: {vocabulary_size: 9, sequence_length: 26, embedding_dim: 32, mask_zero: true}
    - residual:
        layers:
          - layer_normalization
          - multi_head_attention: {num_heads: 4, key_dim: 8, use_causal_mask: true}
    - gru: {units: 32, return_sequences: true}
    - dense: {units: 9}
train: {batch_size: 16, max_steps: 12, loss: {name: sparse_categorical_crossentropy, from_logits: true, ignore_index: 3},
        optimizer: {name: adam, learning_rate: 0.003}}
log: {every: 1 steps}
)");
  const Trained alone = train(folder, config, 1, "{}");
  REQUIRE(alone.losses.size() == 12);
  CHECK(alone.losses.front() == Approx(std::log(9.0)).epsilon(0.1));
  for (const auto& [ranks, strategy] : {std::pair{3, "{}"},
                                        {2, "{tensor: 2}"},
                                        {2, "{pipeline: 2}"},
                                        {2, "{shard: parameters}"},
                                        {4, "{pipeline: 2, tensor: 2}"}}) {
    CAPTURE(ranks, strategy);
    const Trained together = train(folder, config, ranks, strategy);
    for (std::size_t i = 0; i < alone.losses.size(); ++i) {
      CHECK(together.losses[i] == Approx(alone.losses[i]).epsilon(1e-4));
    }
  }
  const Trained one = train(folder, config, 1, "{reproducible: {shards: 4}}");
  CHECK(train(folder, config, 2, "{reproducible: {shards: 4}}").weights == one.weights);
}

TEST_CASE("attention over packed documents trains with the numbers of documents") {
  const Folder folder;
  const std::string config = config_of(folder, R"(
  inputs: [tokens, documents]
  layers:
    - embedding: {name: x, from: tokens, input_dim: 257, output_dim: 32}
    - group_query_attention:
        name: attention
        from: x
        documents: documents
        num_query_heads: 4
        num_key_value_heads: 2
        head_dim: 8
        use_causal_mask: true
        rotary_embedding: {}
    - add: {from: [x, attention]}
    - dense: {units: 257})",
                                       ", document_numbers: true");
  const Trained one = train(folder, config, 1, "{}"), two = train(folder, config, 2, "{tensor: 2}");
  CHECK(one.losses.back() < 0.9 * one.losses.front());
  CHECK(two.losses.back() == Approx(one.losses.back()).epsilon(2e-3));
}

}  // namespace trainctl::test::transformer_run_test
