// Tests that `bench` ends if a rank does not come up within cluster.start_timeout.
#include <chrono>
#include <filesystem>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"

namespace trainctl::test::start_limit_test {
namespace {

constexpr int limit = 3 * sanitizer_slowdown;  // in seconds

// Writes a config, and programs of which `mpirun` starts the program of each rank by `late`: on rank LATE it hangs
// before it starts trainctl, as a module or a mount may hang.
std::string write_files(const Folder& folder) {
  folder.write("bin/mpirun", R"(#!/bin/bash
words=()
for word; do
  case $word in */trainctl) [ "$found" ] || words+=("$(dirname "$0")/late"); found=1 ;; esac
  words+=("$word")
done
PATH=${PATH#*:} exec mpirun "${words[@]}"
)");
  folder.write("bin/late", R"(#!/bin/sh
[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" != "$LATE" ] || exec sleep 1000
exec "$@"
)");
  for (const char* program : {"bin/mpirun", "bin/late"}) {
    std::filesystem::permissions(folder / program, std::filesystem::perms::owner_all);
  }
  return folder.write("c.yaml", R"(
data: {dataset: synthetic, samples: 64, shape: [4], classes: 3}
model: {layers: [{dense: {units: 8, activation: relu}}, {dense: {units: 3}}]}
)" + train_section("batch_size: 16, epochs: 1, optimizer: {name: sgd, learning_rate: 0.1}"));
}

TEST_CASE("bench ends when a rank does not come up within cluster.start_timeout", "[waits]") {
  const Folder folder;
  const std::string config = write_files(folder), path = getenv("PATH");
  for (const auto& [what, late] : {std::pair{"step", 1}, {"step", 0}, {"comm", 1}, {"comm", 0}}) {
    CAPTURE(what, late);
    const auto begin = std::chrono::steady_clock::now();
    Command bench(folder,
                  {"bench", what, config, "--ranks", "2", "--device", "cpu", "--seconds", "0.1", "--set",
                   format("cluster.start_timeout={} s", limit)},
                  ".", {format("PATH={}/bin:{}", folder.path().string(), path), format("LATE={}", late)});
    CHECK(bench.wait() == 5);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    CHECK(seconds.count() >= limit);
    CHECK(seconds.count() < 5 * limit);
    CHECK(bench.out().empty());
    CAPTURE(bench.errors());
    CHECK(contains(bench.errors(), format("the ranks did not start within {} s; a rank, or the program that starts it, "
                                          "hangs before MPI_Init",
                                          limit)));
    CHECK(bench.left_no_process());
  }
}

TEST_CASE("without a late rank, bench measures with ranks that the same programs start") {
  const Folder folder;
  const std::string config = write_files(folder), path = getenv("PATH");
  for (const char* what : {"step", "comm"}) {
    Command bench(folder, {"bench", what, config, "--ranks", "2", "--device", "cpu", "--seconds", "0.1"}, ".",
                  {format("PATH={}/bin:{}", folder.path().string(), path), "LATE=none"});
    CHECK(bench.wait() == 0);
    CAPTURE(bench.errors());
    CHECK_FALSE(bench.out().empty());
  }
}

}  // namespace
}  // namespace trainctl::test::start_limit_test
