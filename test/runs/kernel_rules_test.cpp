// Tests that runs that promise their bits choose kernels by rules, whatever the user's cache holds.
#include <cstdlib>
#include <sstream>

#include "core/backend/choices.h"
#include "run/job/kept_kernels.h"
#include "run/job/user_cache.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"

namespace trainctl::test::kernel_rules_test {
namespace {

struct Trained {
  std::string weights;  // hash of the weights
  std::string kernels;  // hash of the kernels in the run's metrics
  std::string choices, device;
};

Trained train_with_cache(const Folder& folder, const std::string& config, const std::string& cache, int ranks,
                         const std::vector<std::string>& settings) {
  static int number = 0;
  const std::string directory = folder / ("run-" + std::to_string(number++));
  std::vector<std::string> words = {"run",       config,    "--ranks",    std::to_string(ranks),
                                    "--run-dir", directory, "--progress", "none"};
  for (const std::string& setting : settings) words.insert(words.end(), {"--set", setting});
  Command run(folder, words, ".", {"XDG_CACHE_HOME=" + folder / cache});
  const int code = run.wait();
  INFO(tail(run.errors()));
  REQUIRE(code == 0);
  const Json inspected = Json::parse(trainctl(folder, {"inspect", directory, "--json"}).out);
  const Json& facts = inspected.at("checkpoints").at(0).at("facts");
  const Json start = events(directory, "start").back();
  CHECK(start.at("kernels") == facts.at("kernel_hash"));
  return {events(directory, "end").back().at("weights_sha256"), start.at("kernels"), facts.at("kernel_choices"),
          facts.at("device")};
}

// Fills a cache with another implementation for every computation of a run: oneDNN's reference for convolutions, the
// other layout of the kernel for products.
void fill_cache(const Folder& folder, const std::string& cache, const Trained& run) {
  KernelChoices other;
  std::istringstream lines(run.choices);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t tab = line.find('\t');
    const bool dense = line.starts_with("dense");
    other.record(line.substr(0, tab), !dense ? "ref:any" : line.substr(tab + 1) == "plain" ? "packed" : "plain");
  }
  REQUIRE(other.size() > 4);
  setenv("XDG_CACHE_HOME", (folder / cache).c_str(), 1);
  keep_cached({kernels_file, run.device, "kernel choices", ""}, other.file_text());
  unsetenv("XDG_CACHE_HOME");
}

const std::string network = R"(
model:
  layers:
    - conv2d: {filters: 32, kernel_size: 3, padding: same, activation: relu}
    - conv2d: {filters: 32, kernel_size: 3, padding: same, activation: relu}
    - max_pooling2d: {pool_size: 2}
    - flatten
    - dense: {units: 96, activation: relu}
    - dense: {units: 5}
)";

}  // namespace

TEST_CASE("runs that promise their bits compute the same bits with a cache of other kernels") {
  const Folder folder;
  const std::string config = folder.write(
      "config.yaml", uneven_data + network + train_section("batch_size: 24, epochs: 1, optimizer: {name: sgd}"));
  const std::vector<std::string> settings = {
      GENERATE("strategy={reproducible: {shards: 8}}", "train.deterministic=true", "train.kernel_timing=false")};
  CAPTURE(settings[0]);
  const Trained fresh = train_with_cache(folder, config, "fresh", 1, settings);
  fill_cache(folder, "filled", fresh);
  const Trained filled = train_with_cache(folder, config, "filled", 1, settings);
  CHECK(filled.weights == fresh.weights);
  CHECK(filled.kernels == fresh.kernels);
  CHECK(filled.choices == fresh.choices);
  if (settings[0].starts_with("strategy")) {
    const Trained on_two = train_with_cache(folder, config, "filled", 2, settings);
    CHECK(on_two.weights == fresh.weights);
    CHECK(on_two.kernels == fresh.kernels);
    return;
  }
  // Any other run uses the kernels in the cache, and computes other bits.
  const Trained timed = train_with_cache(folder, config, "filled", 1, {});
  CHECK(contains(timed.choices, "ref:any"));
  CHECK(timed.weights != fresh.weights);
  CHECK(timed.kernels != fresh.kernels);
}

}  // namespace trainctl::test::kernel_rules_test
