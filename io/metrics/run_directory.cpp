// Finding, locking and preparing a run directory.
#include "io/metrics/run_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "io/checkpoint/atomic_file.h"
#include "io/metrics/metrics_jsonl.h"
#include "io/yaml/yaml.h"

namespace trainctl {
namespace fs = std::filesystem;
namespace {

// What may lie in a folder that holds no run yet.
bool is_ours_before_a_run(const std::string& name) {
  return name.starts_with('.') || name == "lock" || name == "log.txt" || name == "logs";
}

FoundRun look(const std::string& path, const Node& config) {
  std::error_code ignored;
  if (fs::exists(path + "/config.yaml", ignored)) {
    Reader reader;
    const Node before = load_yaml(path + "/config.yaml", environment(), reader);
    reader.throw_if_failed();
    const bool finished = final_status(path + "/metrics.jsonl") == "completed";
    return {finished ? FoundRun::State::finished : FoundRun::State::unfinished, deciding_differences(before, config)};
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(path, ignored)) {
    if (!is_ours_before_a_run(entry.path().filename().string())) return {FoundRun::State::foreign, {}};
  }
  return {};
}

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  gethostname(name, HOST_NAME_MAX);
  return name;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += "\n  " + line;
  return text;
}

}  // namespace

RunVerdict decide(const FoundRun& found, bool stated, bool may_resume, const std::string& path) {
  const auto refuse = [&](const std::string& why, const char* remedy) -> RunVerdict {
    throw Error(ErrorKind::config, Place{path}, why, remedy);
  };
  switch (found.state) {
    case FoundRun::State::nothing:
      return RunVerdict::start;
    case FoundRun::State::foreign:
      return refuse("this folder holds other things than a run", "choose an empty or a new one (--run-dir)");
    case FoundRun::State::finished:
      if (!stated) return RunVerdict::look_elsewhere;
      if (may_resume) return RunVerdict::is_finished;
      return refuse("a finished run lies there, and --resume never keeps it", "choose another one (--run-dir)");
    case FoundRun::State::unfinished:
      break;
  }
  if (!may_resume) {
    if (!stated) return RunVerdict::look_elsewhere;
    return refuse("an unfinished run lies there, and --resume never keeps it", "choose another one (--run-dir)");
  }
  if (found.differences.empty()) return RunVerdict::resume;
  return refuse("an unfinished run of another config lies there:" + joined(found.differences) + "\n",
                "finish it with its own config, choose another directory (--run-dir) or another name, or start anew "
                "beside it (--resume never)");
}

std::vector<std::string> deciding_differences(const Node& before, const Node& now) {
  const auto deciding = [](Node config) {
    std::erase_if(config.entries, [](const Node::Entry& entry) {
      static constexpr const char* others[] = {"name", "cluster", "log", "checkpoint", "faults", "resolved"};
      return std::find(std::begin(others), std::end(others), entry.key) != std::end(others);
    });
    return config;
  };
  return differences(deciding(before), deciding(now));
}

std::string lock_holder(const std::string& path) {
  std::string who;
  std::getline(std::ifstream(path + "/lock"), who);
  return who;
}

RunDirectory::RunDirectory(const RunRequest& request) {
  const bool stated = !request.stated.empty();
  try {
    for (int number = 1;; ++number) {
      take(stated ? request.stated : format("runs/{}{}", request.name, number == 1 ? "" : format("-{}", number)));
      verdict_ = decide(look(path_, request.config), stated, request.may_resume, path_);
      if (verdict_ != RunVerdict::look_elsewhere) break;
      release();
    }
    if (is_finished()) return;
    remove_leftovers(path_);
    write_config(request.config);
    log::add_file(path_ + "/log.txt");
  } catch (...) {
    release();
    throw;
  }
}

RunDirectory::~RunDirectory() { release(); }

// Before anything is read there, so that two processes never decide on the same ground.
void RunDirectory::take(const std::string& path) {
  path_ = path;
  create_folders(path);
  const std::string file = path + "/lock";
  lock_ = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock_ < 0) {
    throw Error(ErrorKind::resource, Place{path}, "cannot write: " + std::generic_category().message(errno),
                "choose a run directory that can be written (--run-dir)");
  }
  const int error = flock(lock_, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
  if (error != EWOULDBLOCK) {
    if (error != 0) {
      const std::string why = std::generic_category().message(error);
      log::warning(format("{}: {}: nothing keeps a second run away", file, why));
    }
    const std::string who = format("process {} on {}\n", getpid(), host_name());
    if (ftruncate(lock_, 0) != 0 || pwrite(lock_, who.data(), who.size(), 0) < 0) log::debug("the lock stays unnamed");
    return;
  }
  const std::string who = lock_holder(path);
  throw Error(ErrorKind::config, Place{path}, "another trainctl is running there" + (who.empty() ? "" : ": " + who),
              "wait until it has ended, or choose another directory (--run-dir)");
}

void RunDirectory::release() {
  if (lock_ >= 0) close(std::exchange(lock_, -1));
}

void RunDirectory::write_config(const Node& config) const { write_file(path_ + "/config.yaml", to_yaml(config)); }

}  // namespace trainctl
