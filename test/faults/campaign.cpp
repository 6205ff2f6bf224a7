// Runs trials in which a system call fails or kills the run.
#include "test/faults/campaign.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <sstream>

#include "core/base/error.h"
#include "core/base/format.h"
#include "io/checkpoint/load.h"

namespace trainctl::test {
namespace fs = std::filesystem;
namespace {

// The monitored metric improves in some epochs only, so that `best` moves after some saves and stays after others.
const std::string config = R"(
data: {dataset: synthetic, samples: 60, shape: [4], classes: 3, validation: {samples: 20}}
model: {layers: [{dense: {units: 4, activation: relu}}, {dense: 3}]}
train: {loss: sparse_categorical_crossentropy, metrics: [accuracy], batch_size: 20, epochs: 5,
        optimizer: {name: adam, learning_rate: 0.4}}
checkpoint: {every: 2 steps, keep: 2, monitor: val_accuracy}
)";

std::vector<std::string> lines_of(const std::string& path) {
  std::istringstream text(read_file(path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

// Puts the folders of the trials into memory if possible. Returns the name of the config.
std::string use_memory() {
  if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 1);
  return "faults.yaml";
}

std::string target_of(const std::string& link) {
  std::error_code none;
  return fs::read_symlink(link, none).string();
}

RunOutcome outcome_of(const std::string& directory) {
  RunOutcome outcome;
  const std::vector<Json> ends = events(directory, "end");
  if (!ends.empty()) outcome.weights_sha256 = ends.back().at("weights_sha256");
  outcome.last = target_of(directory + "/checkpoints/last");
  outcome.best = target_of(directory + "/checkpoints/best");
  for (const CheckpointFolder& folder : list_checkpoints(directory)) {
    outcome.checkpoints.insert(fs::path(folder.path).filename());
  }
  return outcome;
}

std::string text_of(const RunOutcome& outcome) {
  std::string names;
  for (const std::string& name : outcome.checkpoints) names += " " + name;
  return format("last {}, best {}, weights {}, checkpoints{}", outcome.last, outcome.best,
                outcome.weights_sha256.substr(0, 8), names);
}

// Returns the error of a damaged checkpoint that has its final name; "" if all are whole.
std::string damaged_checkpoint(const std::string& directory) {
  try {
    for (const CheckpointFolder& folder : list_checkpoints(directory)) load_checkpoint(folder.path);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

Campaign::Campaign() : config_(use_memory()) {
  config_ = folder_.write("faults.yaml", config);
  const auto record = [&](const std::vector<std::string>& arguments, const std::vector<std::string>& more,
                          std::vector<std::string>& calls) {
    std::vector<std::string> variables = {"TRAINCTL_FAULT_LOG=" + (folder_ / "log")};
    variables.insert(variables.end(), more.begin(), more.end());
    const Finished finished = run(arguments, variables);
    if (finished.code != 0) throw std::runtime_error("the undisturbed run fails: " + finished.errors);
    calls = lines_of(folder_ / "log");
    fs::remove(folder_ / "log");
  };
  const std::vector<std::string> training = {"run", config_, "--ranks", "1", "--run-dir", directory()};
  train();  // times the kernels
  fs::remove_all(directory());
  record(training, {"TRAINCTL_FAULT_CHANGES=1"}, changes_);
  fs::remove_all(directory());
  record(training, {}, calls_);
  expected_ = outcome_of(directory());
  record({"inspect", directory()}, {}, inspect_calls_);
  fs::rename(directory(), folder_ / "finished");
  // A run that is killed half-way, which later trials resume.
  train({format("TRAINCTL_FAULT_CALL={}", changes_.size() / 2), "TRAINCTL_FAULT_ERROR=0", "TRAINCTL_FAULT_CHANGES=1"});
  fs::rename(directory(), folder_ / "half");
  fs::copy(folder_ / "half", directory(), fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  record(training, {}, resume_calls_);
}

Finished Campaign::run(const std::vector<std::string>& arguments, const std::vector<std::string>& disturbance) {
  std::vector<std::string> variables = {std::string("LD_PRELOAD=") + TRAINCTL_FAULT_INJECTION_LIBRARY,
                                        "TRAINCTL_FAULT_FOLDER=" + directory(),
                                        "ASAN_OPTIONS=verify_asan_link_order=0"};
  variables.insert(variables.end(), disturbance.begin(), disturbance.end());
  Command command(folder_, arguments, ".", disturbance.empty() ? std::vector<std::string>{} : variables);
  const int code = command.wait();
  Finished finished{code, command.out(), command.errors()};
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_.path())) {
    if (entry.path().filename().string().starts_with("output-")) fs::remove(entry.path());
  }
  return finished;
}

Finished Campaign::train(const std::vector<std::string>& disturbance) {
  return run({"run", config_, "--ranks", "1", "--run-dir", directory()}, disturbance);
}

std::string Campaign::compare(const Finished& finished) const {
  if (finished.code != 0) return format("the run after it ends with {}: {}", finished.code, tail(finished.errors));
  RunOutcome found = outcome_of(directory());
  // An old checkpoint that could not be removed after the last save causes a warning, and the next run removes it.
  if (contains(finished.errors, "cannot remove the old checkpoint") &&
      std::includes(found.checkpoints.begin(), found.checkpoints.end(), expected_.checkpoints.begin(),
                    expected_.checkpoints.end())) {
    found.checkpoints = expected_.checkpoints;
  }
  // A checkpoint that could not be written is left out with a warning, and training goes on.
  const bool left_out = contains(finished.errors, "was not written; training goes on");
  const bool equal =
      left_out ? found.weights_sha256 == expected_.weights_sha256 && found.last == expected_.last : found == expected_;
  if (equal) return damaged_checkpoint(directory());
  return format("{}\ninstead of {}", text_of(found), text_of(expected_));
}

std::string Campaign::kill_at(std::size_t k) {
  fs::remove_all(directory());
  const Finished killed =
      train({format("TRAINCTL_FAULT_CALL={}", k), "TRAINCTL_FAULT_ERROR=0", "TRAINCTL_FAULT_CHANGES=1"});
  if (killed.code != -SIGKILL) return format("it was not killed: {}", tail(killed.errors));
  if (const std::string damage = damaged_checkpoint(directory()); !damage.empty()) return damage;
  return compare(train());
}

std::string Campaign::end_of_disturbed(const Finished& disturbed, const std::string& call) {
  const bool reading = call == "read" || call == "pread" || call == "opendir" || call == "readdir" || call == "stat";
  const std::set<int> allowed = reading ? std::set{0, 3, 6} : std::set{0, 2, 3, 6};
  if (!allowed.contains(disturbed.code) || contains(disturbed.errors, "internal error")) {
    return format("it ends with {}: {}", disturbed.code, tail(disturbed.errors));
  }
  return damaged_checkpoint(directory());
}

std::string Campaign::train_disturbed(const std::vector<std::string>& calls, std::size_t k, int error) {
  const Finished failed = train({format("TRAINCTL_FAULT_CALL={}", k), format("TRAINCTL_FAULT_ERROR={}", error)});
  const std::string wrong = end_of_disturbed(failed, calls[k - 1]);
  if (!wrong.empty()) return wrong;
  return compare(failed.code == 0 ? failed : train());
}

std::string Campaign::fail_at(std::size_t k, int error) {
  fs::remove_all(directory());
  return train_disturbed(calls_, k, error);
}

std::string Campaign::fail_resume_at(std::size_t k, int error) {
  fs::remove_all(directory());
  fs::copy(folder_ / "half", directory(), fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  return train_disturbed(resume_calls_, k, error);
}

std::string Campaign::fail_inspect_at(std::size_t k, int error) {
  fs::remove_all(directory());
  fs::copy(folder_ / "finished", directory(), fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  const Finished failed =
      run({"inspect", directory()}, {format("TRAINCTL_FAULT_CALL={}", k), format("TRAINCTL_FAULT_ERROR={}", error)});
  const bool right = failed.code == 0 || failed.code == 1 || failed.code == 2 || failed.code == 3 || failed.code == 6;
  if (!right || contains(failed.errors, "internal error")) {
    return format("it ends with {}: {}", failed.code, tail(failed.errors));
  }
  return "";
}

std::vector<int> errors_of(const std::string& call) {
  const auto is = [&call](std::initializer_list<const char*> names) {
    return std::any_of(names.begin(), names.end(), [&](const char* name) { return call == name; });
  };
  if (is({"open", "open64", "openat", "openat64", "opendir", "fopen", "fopen64"})) {
    return {EACCES, EIO, EMFILE, ENFILE, ENOSPC, EINTR, ENOMEM};
  }
  if (is({"write", "pwrite"})) return {ENOSPC, EIO, EINTR, EDQUOT, EFBIG};
  if (is({"read", "pread"})) return {EIO, EINTR};
  if (is({"readdir", "fdopendir", "closedir"})) return {EIO, ENOMEM};
  if (is({"fsync", "close"})) return {EIO, ENOSPC, EINTR, EDQUOT};
  if (is({"flock"})) return {EINTR, ENOLCK};
  if (is({"mkdir", "symlink", "rename", "renameat2"})) return {EACCES, EIO, ENOSPC, EROFS};
  if (is({"unlink", "unlinkat", "remove", "rmdir"})) return {EACCES, EIO, EROFS};
  return {EACCES, EIO, ENOMEM};
}

std::mt19937 campaign_random() {
  const char* seed = std::getenv("TRAINCTL_FAULT_SEED");
  return std::mt19937(seed == nullptr ? 1u : static_cast<unsigned>(std::strtoul(seed, nullptr, 10)));
}

std::vector<std::size_t> chosen_points(std::size_t count, std::size_t few, std::mt19937& random) {
  std::vector<std::size_t> points(count);
  std::iota(points.begin(), points.end(), 1);
  const char* wanted = std::getenv("TRAINCTL_FAULT_POINTS");
  if (wanted != nullptr && std::strcmp(wanted, "all") == 0) return points;
  std::shuffle(points.begin(), points.end(), random);
  points.resize(std::min(count, wanted == nullptr ? few : std::strtoul(wanted, nullptr, 10)));
  std::sort(points.begin(), points.end());
  return points;
}

}  // namespace trainctl::test
