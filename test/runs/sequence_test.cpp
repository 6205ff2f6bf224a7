// Tests networks on sequences of tokens, with a class for each position.
#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/files.h"

namespace trainctl::test::sequence_test {
namespace {

constexpr std::int64_t sequences = 120, length = 6, tokens = 11;

// The target of each position is a token that depends only on the token at this position.
std::string config_of(const Folder& folder, std::int64_t input_dim = tokens, const std::string& data = "") {
  std::vector<std::int64_t> x, y;
  for (std::int64_t i = 0; i < sequences * length; ++i) {
    x.push_back(i * 7919 % 101 % tokens);
    y.push_back((x.back() * 3 + 5) % tokens);
  }
  folder.write("x.npy", npy("<i8", format("({}, {})", sequences, length), raw(x)));
  folder.write("y.npy", npy("<i8", format("({}, {})", sequences, length), raw(y)));
  return folder.write("sequence.yaml", format(R"(
data: {{dataset: npy, x: x.npy, y: y.npy, validation: {{split: 0.2}}{}}}
model:
  layers:
    - embedding: {{input_dim: {}, output_dim: 8}}
    - dense: {{units: 16, activation: relu}}
    - dense: {{units: {}, activation: softmax}}
train: {{batch_size: 20, epochs: 40, loss: sparse_categorical_crossentropy, metrics: [accuracy],
        optimizer: {{name: adam, learning_rate: 0.03}}}}
)",
                                              data, input_dim, tokens));
}

TEST_CASE("a network on tokens learns a class for each position, on one rank as on two") {
  const Folder folder;
  const std::string config = config_of(folder);
  REQUIRE(trainctl(folder, {"check", config, "--quiet"}).code == 0);
  std::vector<Json> epochs[2];
  for (const int ranks : {1, 2}) {
    const std::string directory = folder / format("ranks{}", ranks);
    const Finished run = trainctl(
        folder, {"run", config, "--ranks", std::to_string(ranks), "--run-dir", directory, "--resume", "never"});
    INFO(tail(run.errors));
    REQUIRE(run.code == 0);
    epochs[ranks - 1] = events(directory, "epoch");
  }
  REQUIRE(epochs[0].size() == 40);
  REQUIRE(epochs[1].size() == 40);
  const auto loss = [&](int ranks, std::size_t epoch) { return epochs[ranks][epoch]["train"]["loss"].get<double>(); };
  CHECK(loss(0, 0) == Approx(2.3).margin(0.3));  // ln 11, already falling
  CHECK(loss(0, 39) < 0.05);
  CHECK(epochs[0][39]["validation"]["accuracy"] == 1.0);
  for (std::size_t epoch = 0; epoch < 8; ++epoch) CHECK(loss(1, epoch) == Approx(loss(0, epoch)).epsilon(1e-3));

  const Finished evaluated = trainctl(folder, {"eval", config, "--run", folder / "ranks2", "--json"});
  INFO(tail(evaluated.errors));
  REQUIRE(evaluated.code == 0);
  CHECK(Json::parse(evaluated.out)["accuracy"] == 1.0);
}

TEST_CASE("positions of weight 0 are ignored, and the others count by their weights") {
  const Folder folder;
  const std::string config = config_of(folder, tokens, ", weights: w.npy");
  std::vector<std::int64_t> y;
  std::vector<float> w;
  for (std::int64_t i = 0; i < sequences * length; ++i) {
    const std::int64_t token = i * 7919 % 101 % tokens;
    const bool counts = i % 3 != 0;
    y.push_back(counts ? (token * 3 + 5) % tokens : i % tokens);  // an arbitrary target for weight 0
    w.push_back(counts ? 0.5f * static_cast<float>(1 + i % 3) : 0.0f);
  }
  folder.write("y.npy", npy("<i8", format("({}, {})", sequences, length), raw(y)));
  folder.write("w.npy", npy("<f4", format("({}, {})", sequences, length), raw(w)));
  std::vector<Json> epochs[2];
  for (const int ranks : {1, 2}) {
    const std::string directory = folder / format("ranks{}", ranks);
    const Finished run = trainctl(folder, {"run", config, "--ranks", std::to_string(ranks), "--run-dir", directory});
    INFO(tail(run.errors));
    REQUIRE(run.code == 0);
    epochs[ranks - 1] = events(directory, "epoch");
    CHECK(epochs[ranks - 1].back()["train"]["accuracy"] == 1.0);
    CHECK(epochs[ranks - 1].back()["validation"]["accuracy"] == 1.0);
  }
  CHECK(epochs[1][3]["train"]["loss"].get<double>() ==
        Approx(epochs[0][3]["train"]["loss"].get<double>()).epsilon(1e-3));

  // The same weight for all positions: the loss is divided by their number, so it is the unweighted loss times the
  // weight.
  std::fill(w.begin(), w.end(), 0.25f);
  folder.write("w.npy", npy("<f4", format("({}, {})", sequences, length), raw(w)));
  const auto first_loss = [&](const std::string& name, const std::string& file) {
    const Finished run =
        trainctl(folder, {"run", file, "--ranks", "1", "--run-dir", folder / name, "--set", "train.epochs=1"});
    INFO(tail(run.errors));
    REQUIRE(run.code == 0);
    return events(folder / name, "epoch").back()["train"]["loss"].get<double>();
  };
  const double weighted = first_loss("weighted", config);
  CHECK(first_loss("plain", config_of(folder)) != Approx(weighted).epsilon(1e-6));  // it has other targets
  folder.write("y.npy", npy("<i8", format("({}, {})", sequences, length), raw(y)));
  CHECK(first_loss("alike", folder / "sequence.yaml") == Approx(weighted / 0.25).epsilon(1e-5));

  w[7] = -1;
  folder.write("w.npy", npy("<f4", format("({}, {})", sequences, length), raw(w)));
  const Finished negative = trainctl(folder, {"run", config_of(folder, tokens, ", weights: w.npy"), "--ranks", "1"});
  CHECK(negative.code == 3);
  CHECK(contains(negative.errors, "sample 1 has weight -1"));
}

TEST_CASE("tokens out of the embedding's range and transforms of tokens are refused") {
  const Folder folder;
  const Finished unknown = trainctl(folder, {"run", config_of(folder, 10), "--ranks", "1"});
  CHECK(unknown.code == 3);
  CHECK(contains(unknown.errors, "holds token 10, and the embedding has 0 to 9"));
  CHECK(contains(unknown.errors, "input_dim"));

  const std::string scaled = config_of(folder, tokens, ", transform: [{rescale: 1/255}]");
  const Finished transformed = trainctl(folder, {"check", scaled});
  CHECK(transformed.code == 2);
  CHECK(contains(transformed.errors, "tokens"));
}

}  // namespace
}  // namespace trainctl::test::sequence_test
