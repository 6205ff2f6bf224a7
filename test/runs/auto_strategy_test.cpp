// Tests `strategy: auto` with real ranks: a strategy that fits is chosen, trained with, recorded, and kept by a resume.
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"

namespace trainctl::test::auto_strategy_test {
namespace {

constexpr const char* config = R"(
data: {dataset: synthetic, shape: [16], classes: 4, samples: 256}
model: {layers: [{dense: {units: 64, activation: relu}}, {dense: {units: 4}}]}
train:
  batch_size: 32
  max_steps: 8
  loss: sparse_categorical_crossentropy
  optimizer: adam
strategy: auto
cluster: {device: cpu}
)";

// The lines of a section of a run's config.
std::string section(const std::string& text, const std::string& name) {
  const std::size_t begin = text.find("\n" + name + ":");
  REQUIRE(begin != std::string::npos);
  std::size_t end = begin + 1;
  do {
    end = text.find('\n', end + 1);
  } while (end != std::string::npos && text[end + 1] == ' ');
  return text.substr(begin, end - begin);
}

}  // namespace

TEST_CASE("strategy: auto chooses, trains, and a resume keeps the choice") {
  const Folder folder;
  const std::string file = folder.write("job.yaml", config);
  const Finished first = trainctl::test::trainctl(folder, {"run", file, "--ranks", "2", "--run-dir", "run"});
  CAPTURE(first.errors);
  REQUIRE(first.code == 0);
  CHECK((first.errors + first.out).find("strategy: auto chooses data") != std::string::npos);
  const std::string kept = read_file(folder / "run/config.yaml");
  CHECK(section(kept, "resolved").find("\n  strategy: auto") != std::string::npos);
  const std::string chosen = section(kept, "strategy");
  CHECK(chosen.find("\n  tensor: ") != std::string::npos);

  const Finished more = trainctl::test::trainctl(
      folder, {"run", file, "--ranks", "2", "--run-dir", "run", "--set", "train.max_steps=12"});
  CAPTURE(more.errors);
  CHECK(more.code == 0);
  CHECK((more.errors + more.out).find("strategy: auto chooses") == std::string::npos);  // nothing is chosen anew
  CHECK(section(read_file(folder / "run/config.yaml"), "strategy") == chosen);
  CHECK(events(folder / "run", "end").back()["step"] == 12);
}

TEST_CASE("strategy: auto refuses a network that fits with no strategy") {
  const Folder folder;
  const std::string file = folder.write("job.yaml", config);
  const Finished run = trainctl::test::trainctl(
      folder, {"run", file, "--ranks", "2", "--run-dir", "run", "--set", "cluster.memory=1 kB"});
  CHECK(run.code == 6);
  CHECK(run.errors.find("no strategy fits into 1.0 kB of memory per rank") != std::string::npos);
}

}  // namespace trainctl::test::auto_strategy_test
