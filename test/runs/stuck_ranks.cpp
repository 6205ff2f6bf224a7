// Starts runs and suspends one of their ranks.
#include "test/runs/stuck_ranks.h"

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "core/base/format.h"
#include "test/support/configs.h"

namespace trainctl::test {
namespace {

constexpr int timeout = 2 * sanitizer_slowdown;  // in seconds
constexpr int few = 8 * sanitizer_slowdown;      // seconds for asking the ranks and for ending them
constexpr std::size_t at_once = 4;

std::string problem_of(const Folder& folder, const StuckRun& run, std::size_t number) {
  const std::string directory = folder / format("run-{}", number);
  std::vector<std::string> words = {"run",        folder / "stuck.yaml",
                                    "--ranks",    std::to_string(run.ranks),
                                    "--run-dir",  directory,
                                    "--progress", "none",
                                    "--set",      format("cluster.timeout={} s", timeout)};
  words.insert(words.end(), run.more.begin(), run.more.end());
  for (const std::string& setting : run.settings) words.insert(words.end(), {"--set", setting});
  Command command(folder, words, ".", run.variables);
  const bool trains = comes_true([&] {
    return std::filesystem::exists(directory + "/metrics.jsonl") &&
           events(directory, "step").size() > static_cast<std::size_t>(run.step);
  });
  const auto ranks = command.ranks();
  if (!trains || !ranks.contains(run.stopped)) return "does not train: " + tail(command.errors());
  kill(ranks.at(run.stopped), SIGSTOP);
  const auto start = std::chrono::steady_clock::now();
  const int code = command.wait();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const std::string errors = command.errors();
  const std::string expected = format(": rank {} did not arrive within {} s", run.stopped, timeout);
  std::string problem;
  if (code != 5) problem += format("exit code {}; ", code);
  if (seconds > timeout + few) problem += format("ended after {:.1f} s; ", seconds);
  if (!contains(errors, expected) || count(errors, "did not arrive") != 1) problem += "another error; ";
  if (!command.left_no_process()) problem += "a process is left; ";
  return problem.empty() ? problem : problem + tail(errors);
}

}  // namespace

std::string stuck_config(const Folder& folder) {
  return folder.write(
      "stuck.yaml",
      R"(
data: {dataset: synthetic, samples: 160, shape: [8, 8, 3], classes: 5, validation: {samples: 40}}
log: {every: 1 steps}
checkpoint: {every: 3 steps}
model:
  layers:
    - conv2d: {filters: 8, kernel_size: 3, padding: same, activation: relu}
    - batch_normalization
    - conv2d: {filters: 8, kernel_size: 3, padding: same, activation: relu}
    - flatten
    - dense: {units: 32, activation: relu}
    - dense: {units: 5, activation: softmax}
)" + train_section(
          "batch_size: 16, epochs: 100000, kernel_timing: false, optimizer: {name: adam, learning_rate: 1e-4}"));
}

std::vector<std::string> problems_of(const Folder& folder, const std::vector<StuckRun>& runs) {
  std::vector<std::string> problems(runs.size());
  std::atomic<std::size_t> next{0};
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < std::min(at_once, runs.size()); ++i) {
    threads.emplace_back([&] {
      for (std::size_t run = next++; run < runs.size(); run = next++) {
        problems[run] = problem_of(folder, runs[run], run);
        if (problems[run].empty()) continue;
        std::string settings;
        for (const std::string& setting : runs[run].settings) settings += setting + " ";
        problems[run] = format("{}, rank {}: {}", settings, runs[run].stopped, problems[run]);
      }
    });
  }
  threads.clear();
  std::erase(problems, "");
  return problems;
}

}  // namespace trainctl::test
