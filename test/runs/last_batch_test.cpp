// Tests a last batch that cannot be divided into the micro-batches of a full one: it needs no more memory, and all of
// its samples are used.
#include <cmath>

#include "io/checkpoint/load.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"

namespace trainctl::test::last_batch_test {
namespace {

using Arguments = std::vector<std::string>;

// Of 103 samples the last batch has 31: a prime number.
std::string config_of(const Folder& folder) {
  return folder.write("last.yaml", uneven_data + skip_model +
                                       train_section("batch_size: 36, epochs: 2, optimizer: {name: sgd, "
                                                     "learning_rate: 0.02, momentum: 0.9}"));
}

const Arguments one_rank = {"--ranks", "1", "--set", "train.gradient_accumulation=6"};
const Arguments two_ranks = {"--ranks", "2", "--set", "train.gradient_accumulation=6"};

Arguments with(Arguments arguments, const Arguments& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

// All ways to add up gradients over the micro-batches of a batch.
const std::vector<Arguments> cuts = {
    one_rank,
    with(one_rank, {"--set", "strategy.recompute=blocks"}),
    two_ranks,
    with(two_ranks, {"--set", "strategy.overlap=true"}),
    with(two_ranks, {"--set", "strategy.shard=optimizer"}),
    with(two_ranks, {"--set", "strategy.shard=optimizer", "--set", "strategy.overlap=true"}),
    {"--ranks", "2", "--set", "strategy.pipeline=2", "--set", "strategy.micro_batches=6"},
    {"--ranks", "2", "--set", "strategy.pipeline=2", "--set", "strategy.micro_batches=6", "--set",
     "strategy.schedule=gpipe"},
    {"--ranks", "4", "--set", "strategy.pipeline=2", "--set", "strategy.micro_batches=6"},
};

std::vector<float> learnt(const Folder& folder, const Arguments& cut) {
  static int number = 0;
  const std::string directory = folder / std::to_string(++number);
  const Finished run =
      trainctl(folder, with({"run", folder / "last.yaml", "--progress", "none", "--run-dir", directory}, cut));
  CAPTURE(cut, tail(run.errors));
  REQUIRE(run.code == 0);
  std::vector<float> weights;
  const LoadedCheckpoint loaded = load_checkpoint(directory + "/checkpoints/last");
  for (const NamedTensor& tensor : loaded.snapshot.weights) {
    weights.insert(weights.end(), tensor.view.as<float>(), tensor.view.as<float>() + tensor.view.count);
  }
  return weights;
}

std::int64_t arena(const Folder& folder, const Arguments& cut, const std::string& samples) {
  const Finished check = trainctl(
      folder,
      with({"check", folder / "last.yaml", "--json", "--device", "cpu", "--set", "data.samples=" + samples}, cut));
  CAPTURE(cut, tail(check.errors));
  REQUIRE(check.code == 0);
  return Json::parse(check.out).at("arena_bytes");
}

TEST_CASE("all samples of a last batch that micro-batches do not divide are used") {
  const Folder folder;
  config_of(folder);
  const std::vector<float> expected = learnt(folder, {"--ranks", "1"});
  for (const Arguments& cut : cuts) {
    CAPTURE(cut);
    const std::vector<float> found = learnt(folder, cut);
    REQUIRE(found.size() == expected.size());
    float difference = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      difference = std::max(difference, std::abs(found[i] - expected[i]));
    }
    CHECK(difference < 1e-4F);
  }
}

TEST_CASE("a last batch that micro-batches do not divide needs no more memory than a full one") {
  const Folder folder;
  config_of(folder);
  for (const Arguments& cut : cuts) {
    CAPTURE(cut);
    CHECK(arena(folder, cut, "103") == arena(folder, cut, "108"));
  }
}

}  // namespace
}  // namespace trainctl::test::last_batch_test
