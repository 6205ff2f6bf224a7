// Tests reproducible mode: the same weights, bit for bit, for any number of ranks and workers, and across resumes.
#include <random>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"
#include "test/support/files.h"

namespace trainctl::test::reproducible_test {
namespace {

// 103 samples in batches of 24, each cut into 8 logical shards of 3: the last batch has two of these and one of a
// single sample.
const std::string eight_shards = "strategy: {reproducible: {shards: 8}}\n";
const std::string augmented_data = R"(
data: {dataset: synthetic, samples: 103, shape: [8, 8, 3], classes: 5, validation: {samples: 37},
       augment: [{random_flip: horizontal}, {random_crop: {size: 8, padding: 1}}]}
log: {every: 1 steps}
)";
const std::string adam = "batch_size: 24, epochs: 2, clip_norm: 1, optimizer: {name: adam, learning_rate: 3e-3}";

// What a run learned: the hash of its weights, its losses, and the metrics of its validation data.
struct Learned {
  std::string hash;
  std::map<std::int64_t, double> losses;
  std::vector<Json> validation;

  bool operator==(const Learned&) const = default;
};

Learned learn(const Folder& folder, const std::string& config, const std::string& name, int ranks,
              const std::vector<std::string>& settings = {}, const std::vector<std::string>& variables = {}) {
  const std::string directory = folder / name;
  std::vector<std::string> command = {"run",       config,    "--ranks",    std::to_string(ranks),
                                      "--run-dir", directory, "--progress", "none"};
  for (const std::string& setting : settings) command.insert(command.end(), {"--set", setting});
  Command run(folder, command, ".", variables);
  const int code = run.wait();
  INFO(tail(run.errors()));
  REQUIRE(code == 0);
  Learned learned{events(directory, "end").back().at("weights_sha256"), step_losses(directory), {}};
  for (const Json& epoch : events(directory, "epoch")) learned.validation.push_back(epoch.at("validation"));
  return learned;
}

void compare_ranks(const std::string& config, const std::vector<int>& ranks) {
  const Folder folder;
  const std::string file = folder.write("config.yaml", config);
  const Learned one = learn(folder, file, "1", 1);
  REQUIRE(one.losses.size() > 4);
  for (const int count : ranks) {
    CAPTURE(count);
    const Learned many = learn(folder, file, std::to_string(count), count);
    CHECK(many.hash == one.hash);
    CHECK(many.losses == one.losses);
    CHECK(many.validation == one.validation);
  }
}

TEST_CASE("an MLP with dropout learns the same bits on any number of ranks") {
  compare_ranks(uneven_data + mlp_model + eight_shards + train_section(adam), {2, 3, 4, 5, 8});
}

TEST_CASE("gradients that are exchanged in several pieces keep the bits") {
  const std::string large = R"(
model:
  layers:
    - flatten
    - dense: {units: 1300, activation: relu}
    - dense: {units: 1300, activation: tanh}
    - dense: {units: 1301, activation: tanh}
    - dense: {units: 5, activation: softmax}
)";
  compare_ranks(uneven_data + large + eight_shards +
                    train_section("batch_size: 24, epochs: 1, clip_norm: 1, optimizer: {name: sgd, momentum: 0.9}"),
                {2, 3, 5, 8});
}

TEST_CASE("a CNN with skips, dropout and augmentation learns the same bits on any number of ranks") {
  compare_ranks(augmented_data + skip_model + eight_shards + train_section(adam), {2, 3, 4, 5, 8});
}

TEST_CASE("a rank's threads train on shards in parallel and learn the same bits, whatever their number") {
  const Folder folder;
  const std::string config =
      folder.write("config.yaml", augmented_data + batch_norm_model + eight_shards + train_section(adam));
  const Learned one = learn(folder, config, "alone", 1, {}, {"OMP_NUM_THREADS=1"});
  REQUIRE(one.losses.size() > 4);
  for (const int ranks : {1, 2, 3}) {
    for (const int threads : {1, 2, 3, 8}) {
      CAPTURE(ranks, threads);
      CHECK(learn(folder, config, format("{}-{}", ranks, threads), ranks, {},
                  {format("OMP_NUM_THREADS={}", threads)}) == one);
    }
  }
}

TEST_CASE("a rank holds one set of gradients for each level of the tree, and one for each further thread") {
  const Folder folder;
  const std::string config = folder.write("config.yaml", augmented_data + R"(
model: {layers: [flatten, dense: {units: 3000}, dense: {units: 5, activation: softmax}]}
)" + train_section("batch_size: 48, epochs: 1, optimizer: sgd"));
  const auto sets = [&](int shards, int ranks, int threads) {  // sets beyond the one that every run has
    Command check(folder,
                  {"check", config, "--ranks", std::to_string(ranks), "--json", "--set",
                   format("strategy.reproducible.shards={}", shards)},
                  ".", {format("OMP_NUM_THREADS={}", threads)});
    REQUIRE(check.wait() == 0);
    const Json memory = Json::parse(check.out()).at("memory_bytes");
    const auto bytes = [&](const char* region) { return memory.at(region).get<double>(); };
    return (bytes("partial gradients") + bytes("activations and workspace")) / bytes("gradients");
  };
  constexpr double activations = 0.15;  // of a set
  for (const auto& [shards, levels] : {std::pair{8, 3}, {16, 4}}) {
    for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8}) {
      CAPTURE(shards, ranks);
      CHECK(sets(shards, ranks, 1) < levels + activations);
    }
  }
  CHECK(sets(8, 1, 2) < 2 + 1 + activations);
  CHECK(sets(8, 1, 4) < 1 + 3 + activations);
}

TEST_CASE("replicas receive sharded gradients into the same memory in all rounds") {
  const Folder folder;
  const std::string config =
      folder.write("config.yaml", uneven_data + mlp_model + train_section("epochs: 1, optimizer: adam"));
  const auto arena = [&](int shards) {  // of three samples each, on two ranks
    const Finished check =
        trainctl(folder, {"check", config, "--ranks", "2", "--json", "--set", format("train.batch_size={}", 3 * shards),
                          "--set", format("strategy={{reproducible: {{shards: {}}}, shard: gradients}}", shards)});
    REQUIRE(check.code == 0);
    return Json::parse(check.out).at("arena_bytes").get<std::int64_t>();
  };
  CHECK(arena(16) < 1.5 * arena(4));  // larger only by the reordering in the pass of each round
}

TEST_CASE("a stage without trainable layers works with every kind of shard in reproducible mode") {
  const Folder folder;
  const std::string config = folder.write("config.yaml", uneven_data + R"(
model:
  layers:
    - average_pooling2d: {name: smaller, pool_size: 2}
    - flatten: {name: flat}
    - dense: {name: hidden, units: 24, activation: relu}
    - dense: {name: last, units: 5, activation: softmax}
strategy: {reproducible: {shards: 8}, place: {0: [smaller, flat], 1: [hidden, last]}}
)" + train_section(adam));
  const Learned one = learn(folder, config, "one", 2);
  for (const std::string shard : {"optimizer", "gradients", "parameters"}) {
    CAPTURE(shard);
    CHECK(learn(folder, config, shard, 4, {"strategy.shard=" + shard}) == one);
  }
}

TEST_CASE("any number of pipelines of the same stages learns the same bits") {
  const Folder folder;
  const std::string config =
      folder.write("config.yaml", augmented_data + skip_model + eight_shards + train_section(adam));
  for (const char* schedule : {"1f1b", "gpipe"}) {
    CAPTURE(schedule);
    const std::vector<std::string> settings{"strategy.pipeline=2", format("strategy.schedule={}", schedule)};
    const Learned one = learn(folder, config, format("{}-2", schedule), 2, settings);
    REQUIRE(one.losses.size() > 4);
    for (const int ranks : {4, 6}) {
      CAPTURE(ranks);
      CHECK(learn(folder, config, format("{}-{}", schedule, ranks), ranks, settings) == one);
    }
  }
}

TEST_CASE("replicas that shard states, gradients and parameters learn the bits of those that do not") {
  const Folder folder;
  // Buckets that hold no more than two layers.
  const std::string config = folder.write(
      "config.yaml", augmented_data + skip_model +
                         "strategy: {reproducible: {shards: 8}, first_bucket_size: 1 kB, bucket_size: 2 kB}\n" +
                         train_section(adam));
  const Learned one = learn(folder, config, "one", 1);
  const Learned staged = learn(folder, config, "stages", 2, {"strategy.pipeline=2"});
  for (const std::string shard : {"optimizer", "gradients", "parameters"}) {
    const std::string setting = "strategy.shard=" + shard;
    for (const int ranks : {1, 2, 3, 4, 5, 8}) {
      CAPTURE(shard, ranks);
      CHECK(learn(folder, config, format("{}-{}", shard, ranks), ranks, {setting}) == one);
    }
    for (const int ranks : {4, 6}) {
      CAPTURE(shard, ranks);
      CHECK(learn(folder, config, format("{}-stages-{}", shard, ranks), ranks, {"strategy.pipeline=2", setting}) ==
            staged);
    }
  }
}

TEST_CASE("batch normalization, bfloat16, accumulation and recomputation keep the bits of sharded replicas") {
  const Folder folder;
  const auto compare = [&](const std::string& name, const std::string& config, const std::string& shard,
                           const std::vector<std::string>& settings) {
    CAPTURE(name, shard);
    const std::string file = folder.write(name + ".yaml", config);
    const Learned one = learn(folder, file, name, 1);
    std::vector<std::string> shared = settings;
    shared.push_back("strategy.shard=" + shard);
    for (const int ranks : {2, 3}) CHECK(learn(folder, file, format("{}-{}", name, ranks), ranks, shared) == one);
  };
  compare("norm", augmented_data + batch_norm_model + eight_shards + train_section(adam), "gradients", {});
  compare("bfloat16", uneven_data + skip_model + eight_shards + train_section(adam + ", precision: bfloat16"),
          "parameters", {});
  compare("accumulated",
          uneven_data + mlp_model + "strategy: {reproducible: {shards: 6}}\n" +
              train_section("batch_size: 24, epochs: 2, gradient_accumulation: 2, optimizer: {name: adamw}"),
          "gradients", {});
  compare("recomputed", augmented_data + skip_model + eight_shards + train_section(adam), "parameters",
          {"strategy.recompute=blocks"});
}

TEST_CASE("stages that share weights learn the bits of one replica, also if replicas are sharded") {
  const Folder folder;
  const std::string config = folder.write("config.yaml", R"(
data: {dataset: synthetic, samples: 40, shape: [16], classes: 5}
model:
  layers:
    - dense: {name: twice, units: 16, activation: relu}
    - dense: {name: between, units: 16, activation: relu}
    - dense: {name: twice, units: 16, activation: relu}
    - dense: {units: 5, activation: softmax}
strategy: {reproducible: {shards: 8}, pipeline: 2}
log: {every: 1 steps}
)" + train_section("batch_size: 24, epochs: 2, clip_norm: 0.1, optimizer: {name: adam, learning_rate: 1e-2}"));
  const Learned one = learn(folder, config, "one", 2);
  for (const std::string shard : {"none", "optimizer", "gradients", "parameters"}) {
    CAPTURE(shard);
    CHECK(learn(folder, config, shard, 4, {"strategy.shard=" + shard}) == one);
  }
}

TEST_CASE("eval of a reproducible run computes the bits of the run on any number of ranks") {
  const Folder folder;
  const std::string config =
      folder.write("config.yaml", augmented_data + skip_model + eight_shards + train_section(adam));
  const Learned run = learn(folder, config, "run", 3);
  for (const int ranks : {1, 2, 5}) {
    CAPTURE(ranks);
    const Finished eval = trainctl(folder, {"eval", config, "--checkpoint", folder / "run/checkpoints/last", "--data",
                                            "validation", "--ranks", std::to_string(ranks), "--json"});
    REQUIRE(eval.code == 0);
    CHECK(Json::parse(eval.out) == run.validation.back());
  }
}

TEST_CASE("a resume on another instruction set warns that the bits may differ") {
  const Folder folder;
  // The name of the device depends on oneDNN's instruction set only through bfloat16: on a processor without it the
  // name stays the same.
  if (contains(trainctl(folder, {"doctor"}).out, "without bfloat16")) return;
  const std::string config = folder.write("config.yaml", uneven_data + mlp_model + eight_shards + train_section(adam));
  learn(folder, config, "run", 1, {"train.max_steps=3"});
  Command resumed(folder, {"run", config, "--ranks", "1", "--run-dir", folder / "run", "--progress", "none"}, ".",
                  {"ONEDNN_MAX_CPU_ISA=AVX2"});
  REQUIRE(resumed.wait() == 0);
  CHECK(
      contains(resumed.errors(), "the bits that strategy.reproducible promises on one device are not to be expected"));
}

TEST_CASE("recomputed activations change no bit of reproducible mode") {
  const Folder folder;
  const std::string config =
      folder.write("config.yaml", augmented_data + skip_model + eight_shards + train_section(adam));
  const Learned one = learn(folder, config, "kept", 1);
  CHECK(learn(folder, config, "again", 3, {"strategy.recompute=blocks"}) == one);
}

TEST_CASE("every optimizer and every loss learns the same bits on any number of ranks") {
  const Folder folder;
  std::mt19937 random(5);
  constexpr std::int64_t samples = 52, features = 7;
  std::vector<float> x, value;
  std::vector<std::int64_t> yes, kind;
  for (std::int64_t i = 0; i < samples; ++i) {
    for (std::int64_t f = 0; f < features; ++f) x.push_back(static_cast<float>(random() % 2001) / 1000 - 1);
    value.push_back(3 * x.back() + x[x.size() - 2]);
    yes.push_back(value.back() > 0 ? 1 : 0);
    kind.push_back(static_cast<std::int64_t>(random() % 4));
  }
  folder.write("x.npy", npy("<f4", format("({}, {})", samples, features), raw(x)));
  folder.write("value.npy", npy("<f4", format("({}, 1)", samples), raw(value)));
  folder.write("yes.npy", npy("<i8", format("({},)", samples), raw(yes)));
  folder.write("kind.npy", npy("<i8", format("({},)", samples), raw(kind)));
  const std::string config = folder.write("config.yaml", R"(
data:
  dataset: npy
  x: {table: x.npy}
  y: {value: value.npy, rough: value.npy, yes: yes.npy, kind: kind.npy}
  validation: {split: 0.2}
model:
  inputs: [table]
  layers:
    - dense: {name: trunk, units: 24, activation: relu}
    - dense: {name: value, from: trunk, units: 1}
    - dense: {name: rough, from: trunk, units: 1}
    - dense: {name: yes, from: trunk, units: 1, activation: sigmoid}
    - dense: {name: kind, from: trunk, units: 4, activation: softmax}
  outputs: [value, rough, yes, kind]
train:
  batch_size: 16
  epochs: 2
  loss: {value: mean_squared_error, rough: huber, yes: binary_crossentropy, kind: sparse_categorical_crossentropy}
  metrics: {value: [mean_absolute_error], yes: [accuracy, auc], kind: [accuracy]}
  optimizer: sgd
  clip_norm: 1
log: {every: 1 steps}
)" + eight_shards);
  for (const std::string optimizer :
       {"{name: sgd, momentum: 0.9, nesterov: true}", "adam", "adamw", "rmsprop", "lamb"}) {
    const std::string setting = "train.optimizer=" + optimizer, name = std::to_string(random());
    CAPTURE(optimizer);
    const Learned one = learn(folder, config, name + "-one", 1, {setting});
    CHECK(one.losses.size() == 6);
    CHECK(learn(folder, config, name + "-three", 3, {setting}) == one);
    if (optimizer == "lamb") continue;  // it requires whole parameters
    CHECK(learn(folder, config, name + "-shared", 2, {setting, "strategy.shard=gradients"}) == one);
  }
}

TEST_CASE("batch normalization takes the statistics of logical shards, whichever ranks hold them") {
  compare_ranks(
      augmented_data + batch_norm_model + eight_shards +
          train_section("batch_size: 24, epochs: 2, optimizer: {name: sgd, learning_rate: 0.1, momentum: 0.9}"),
      {2, 3, 8});
}

TEST_CASE("micro-batches within logical shards, and numbers of shards that are no powers of two, keep the bits") {
  compare_ranks(uneven_data + mlp_model + "strategy: {reproducible: {shards: 6}}\n" +
                    train_section("batch_size: 24, epochs: 2, gradient_accumulation: 2, optimizer: {name: lamb, "
                                  "learning_rate: 1e-2}"),
                {2, 4, 5, 6});
}

TEST_CASE("bfloat16 keeps the bits of reproducible mode") {
  compare_ranks(uneven_data + skip_model + eight_shards + train_section(adam + ", precision: bfloat16"), {2, 3});
}

TEST_CASE("ResNet-20 learns the same bits on any number of ranks") {
  compare_ranks(R"(
data: {dataset: synthetic, samples: 104, shape: [32, 32, 3], classes: 10}
model: {preset: resnet20}
log: {every: 1 steps}
)" + eight_shards + train_section("batch_size: 32, epochs: 2, optimizer: {name: sgd, learning_rate: 0.1}"),
                {2, 3, 4, 5, 8});
}

TEST_CASE("a network on sequences of tokens learns the same bits on any number of ranks") {
  const Folder folder;
  std::mt19937 random(7);
  constexpr std::int64_t sequences = 103, length = 6, tokens = 12;
  std::vector<std::int64_t> x, y;
  for (std::int64_t i = 0; i < sequences * length; ++i) {
    x.push_back(static_cast<std::int64_t>(random() % tokens));
    y.push_back((x.back() * 5 + 3) % tokens);
  }
  const std::string x_file = folder.write("x.npy", npy("<i8", format("({}, {})", sequences, length), raw(x)));
  const std::string y_file = folder.write("y.npy", npy("<i8", format("({}, {})", sequences, length), raw(y)));
  compare_ranks(format(R"(
data: {{dataset: npy, x: {}, y: {}}}
model:
  layers:
    - embedding: {{input_dim: {}, output_dim: 64}}
    - dense: {{units: 256, activation: relu}}
    - layer_normalization
    - dense: {{units: {}, activation: softmax}}
train: {{batch_size: 24, epochs: 2, loss: sparse_categorical_crossentropy, metrics: [accuracy],
        optimizer: {{name: adamw, learning_rate: 3e-3}}}}
log: {{every: 1 steps}}
)",
                       x_file, y_file, tokens, tokens) +
                    eight_shards,
                {2, 3, 4, 5, 8});
}

TEST_CASE("workers and the cache of samples change no bit of reproducible mode") {
  const Folder folder;
  const std::string config =
      folder.write("config.yaml", augmented_data + mlp_model + eight_shards + train_section(adam));
  const Learned expected = learn(folder, config, "auto", 2);
  for (const int workers : {0, 1, 2, 3, 4}) {
    CAPTURE(workers);
    CHECK(learn(folder, config, format("workers-{}", workers), 2, {format("data.workers={}", workers)}) == expected);
  }
  CHECK(learn(folder, config, "cached", 3, {"data.cache=memory"}) == expected);
}

TEST_CASE("20 runs that are resumed at a random step with another number of ranks end with the same bits") {
  const Folder folder;
  const std::string config =
      folder.write("config.yaml", augmented_data + batch_norm_model + eight_shards + train_section(adam));
  const std::string expected = learn(folder, config, "whole", 2).hash;
  std::mt19937 random(11);
  const int counts[] = {1, 2, 3, 4, 5, 8};
  const auto ranks = [&] { return counts[random() % std::size(counts)]; };
  for (int seed = 0; seed < 20; ++seed) {
    const int before = ranks(), after = ranks(), step = 1 + static_cast<int>(random() % 9);
    CAPTURE(seed, before, after, step);
    const std::string name = format("resumed-{}", seed);
    learn(folder, config, name, before, {format("train.max_steps={}", step)});
    CHECK(learn(folder, config, name, after).hash == expected);
  }
}

TEST_CASE("options whose sums depend on the ranks are refused in reproducible mode") {
  const Folder folder;
  const std::string config = folder.write("config.yaml", uneven_data + mlp_model + eight_shards + train_section(adam));
  const auto refused = [&](const std::string& setting, const std::string& text, int ranks = 2) {
    CAPTURE(setting);
    const Finished run = trainctl(folder, {"check", config, "--ranks", std::to_string(ranks), "--set", setting});
    CHECK(run.code == 2);
    INFO(run.errors);
    CHECK(contains(run.errors, text));
  };
  refused("strategy.tensor=2", "`tensor` cannot be combined with `reproducible`");
  refused("strategy.sync_every=4", "`sync_every` cannot be combined with `reproducible`");
  refused("strategy.share=[1, 2]", "`share` cannot be combined with `reproducible`");
  refused("strategy.gradient_dtype=bfloat16", "`gradient_dtype` cannot be combined with `reproducible`");
  refused("train.batch_size=20", "a batch of 20 samples cannot be divided into 8 logical shards");
  refused("strategy.reproducible.shards=2", "3 replicas share 2 logical shards", 3);
}

}  // namespace
}  // namespace trainctl::test::reproducible_test
