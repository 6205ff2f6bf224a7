// Tests a run whose output goes into a pipe that nobody reads while it trains, as in `trainctl run c.yaml 2>&1 | less`.
#include <cstdlib>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"

namespace trainctl::test::unread_output_test {
namespace {

// Trains for 1,400 epochs of one step, with a line for each.
std::string write_config(const Folder& folder) {
  return folder.write("c.yaml", R"(
data: {dataset: synthetic, samples: 320, shape: [6], classes: 3}
log: {every: 1 steps}
checkpoint: {every: 10000 epochs}
model: {layers: [{dense: {units: 8, activation: tanh}}, {dense: {units: 3, activation: softmax}}]}
)" + train_section("batch_size: 320, epochs: 1400, optimizer: sgd"));
}

TEST_CASE("a run whose output nobody reads trains to its end, with the same weights") {
  const Folder folder;
  const std::string config = write_config(folder), read = folder / "read", unread = folder / "unread";
  REQUIRE(trainctl(folder, {"run", config, "--ranks", "2", "--run-dir", read, "--quiet"}).code == 0);
  const std::string command = format("{} run {} --ranks 2 --run-dir {} --progress plain 2>&1; echo \"exit code $?\"",
                                     TRAINCTL_BINARY, config, unread);
  const std::string reader = folder.write(
      "reader", format("until grep -q '\"event\":\"end\"' {}/metrics.jsonl; do sleep 0.05; done; cat", unread));
  const std::string pipeline =
      format("cd {} && ({}) | timeout 60 sh {} >output", folder.path().string(), command, reader);
  CHECK(std::system(pipeline.c_str()) == 0);
  const std::string output = read_file(folder / "output");
  INFO(tail(output));
  CHECK(output.size() > 65536);  // more than a pipe holds
  CHECK(contains(output, "exit code 0"));
  CHECK(events(unread, "end").at(0).at("weights_sha256") == events(read, "end").at(0).at("weights_sha256"));
}

}  // namespace
}  // namespace trainctl::test::unread_output_test
