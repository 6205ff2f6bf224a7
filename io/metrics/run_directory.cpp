// Finds, locks and prepares a run directory.
#include "io/metrics/run_directory.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/spec/units.h"
#include "io/checkpoint/atomic_file.h"
#include "io/checkpoint/store.h"
#include "io/checkpoint/temporary_name.h"
#include "io/metrics/absent_supervisor.h"
#include "io/metrics/metrics_jsonl.h"
#include "io/yaml/yaml.h"

namespace trainctl {
namespace fs = std::filesystem;
namespace {

constexpr const char* limit_keys[] = {"epochs", "max_steps", "max_time"};  // keys of the section `train`

constexpr std::int64_t largest_config = 64 << 20;  // in bytes; includes resolved values such as class names

// Whether a folder without a run may have this entry.
bool may_precede_run(const FolderEntry& entry) {
  const std::string& name = entry.name;
  return name.starts_with('.') || name == "lock" || name == "supervisor" || name == "log.txt" || name == "logs";
}

template <std::size_t n>
void erase_keys(Node& map, const char* const (&keys)[n]) {
  std::erase_if(map.entries, [&keys](const Node::Entry& entry) {
    return std::find(std::begin(keys), std::end(keys), entry.key) != std::end(keys);
  });
}

// Returns the limit that a key of `train` sets for a run, without its unit; infinity if it sets no limit.
double limit_of(const Node& config, const char* key) {
  const Node* train = config.find("train");
  const Node* value = train == nullptr ? nullptr : train->find(key);
  const auto seconds = value == nullptr || !value->is_scalar() ? std::nullopt : parse_seconds(value->text);
  return seconds ? seconds->value : std::numeric_limits<double>::infinity();
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += "\n  " + line;
  return text;
}

}  // namespace

Node load_run_config(const std::string& run) {
  const std::string path = run + "/config.yaml";
  Reader reader;
  Node config = parse_yaml(read_file(path, largest_config), path, run, reader);
  expand_variables(config, environment(), reader);
  reader.throw_if_failed();
  return config;
}

FoundRun inspect_run(const std::string& path, const Node& config) {
  std::error_code error;
  const fs::file_type type = fs::status(path, error).type();
  if (type == fs::file_type::not_found) return {};
  if (!error && type != fs::file_type::directory) error = std::make_error_code(std::errc::not_a_directory);
  if (error) {
    throw Error(ErrorKind::resource, SourceLocation{path}, "cannot write: " + error.message(),
                "choose a run directory that can be written (--run-dir)");
  }
  const std::vector<FolderEntry> entries = list_folder(path);
  const auto has = [&entries](std::string_view name) {
    return std::any_of(entries.begin(), entries.end(), [name](const FolderEntry& entry) { return entry.name == name; });
  };
  // A config.yaml alone does not make a run directory.
  const bool is_run = has("config.yaml") && (has("lock") || has("metrics.jsonl") || has("checkpoints"));
  if (!is_run) {
    const bool empty = std::all_of(entries.begin(), entries.end(), may_precede_run);
    return {empty ? FoundRun::State::nothing : FoundRun::State::foreign};
  }
  const bool finished = final_status(path + "/metrics.jsonl") == "completed";
  const bool empty = list_checkpoints(path).empty();
  if (!finished && empty) return {FoundRun::State::empty};
  const Node before = load_run_config(path);
  return {finished ? FoundRun::State::finished : FoundRun::State::unfinished, deciding_differences(before, config),
          !empty && ends_later(config, before), finished && empty};
}

RunVerdict decide(const FoundRun& found, bool is_explicit, bool may_resume, const std::string& path) {
  const auto refuse = [&](const std::string& why, const char* remedy) -> RunVerdict {
    throw Error(ErrorKind::config, SourceLocation{path}, why, remedy);
  };
  switch (found.state) {
    case FoundRun::State::nothing:
      return RunVerdict::start;
    case FoundRun::State::empty:
      return RunVerdict::start_anew;
    case FoundRun::State::foreign:
      return refuse("this folder holds files that belong to no run", "choose an empty or a new one (--run-dir)");
    case FoundRun::State::finished:
      if (!is_explicit) return RunVerdict::look_elsewhere;
      if (!may_resume) {
        return refuse("there is a finished run, and --resume never does not continue it",
                      "choose another one (--run-dir)");
      }
      if (!found.differences.empty()) {
        return refuse("there is a finished run of another config:" + joined(found.differences) + "\n",
                      "choose another directory (--run-dir)");
      }
      if (found.lacks_checkpoint) {
        throw Error(
            ErrorKind::data, SourceLocation{path},
            "there is a finished run, but its folder `checkpoints` holds no checkpoint, so that its weights are "
            "missing",
            "restore that folder, remove the run directory to train again, or choose another one (--run-dir)");
      }
      return found.asks_for_more ? RunVerdict::resume : RunVerdict::is_finished;
    case FoundRun::State::unfinished:
      break;
  }
  if (!may_resume) {
    if (!is_explicit) return RunVerdict::look_elsewhere;
    return refuse("there is an unfinished run, and --resume never does not continue it",
                  "choose another one (--run-dir)");
  }
  if (found.differences.empty()) return RunVerdict::resume;
  return refuse("there is an unfinished run of another config:" + joined(found.differences) + "\n",
                "finish it with its own config, choose another directory (--run-dir) or another name, or start a new "
                "run in another directory (--resume never)");
}

std::vector<std::string> deciding_differences(const Node& before, const Node& now) {
  // The distribution of the work does not change the results, except for rounding.
  const auto deciding = [](Node config) {
    erase_keys(config, {"name", "strategy", "cluster", "log", "checkpoint", "faults", "resolved"});
    for (Node::Entry& entry : config.entries) {
      if (entry.key == "train") erase_keys(entry.value, limit_keys);
      if (entry.key == "train") erase_keys(entry.value, {"on_not_finite", "max_skipped"});
      if (entry.key == "strategy") erase_keys(entry.value, {"data", "pipeline", "place", "schedule"});
    }
    return config;
  };
  return differences(deciding(before), deciding(now));
}

bool ends_later(const Node& now, const Node& before) {
  return std::any_of(std::begin(limit_keys), std::end(limit_keys),
                     [&](const char* key) { return limit_of(now, key) > limit_of(before, key); });
}

RunDirectory::RunDirectory(RunRequest request)
    : request_(std::move(request)), lock_(request_.generation, request_.yields) {
  const bool is_explicit = !request_.explicit_path.empty();
  std::string skipped_runs;
  for (int number = 1;; ++number) {
    path_ = is_explicit ? request_.explicit_path
                        : format("runs/{}{}", request_.name, number == 1 ? "" : format("-{}", number));
    FoundRun found = inspect_run(path_, request_.config);
    if (found.state != FoundRun::State::foreign) {
      try {
        lock_.take_existing(path_);  // so that the run cannot change after the decision
      } catch (const MayStartAgain&) {
        if (decide(found, is_explicit, request_.may_resume, path_) != RunVerdict::look_elsewhere) throw;
      }
      found = inspect_run(path_, request_.config);
    }
    found_ = found.state;
    verdict_ = decide(found, is_explicit, request_.may_resume, path_);
    if (verdict_ == RunVerdict::start_anew && request_.has_copy) verdict_ = RunVerdict::resume;
    if (verdict_ != RunVerdict::look_elsewhere) break;
    skipped_runs =
        format("{} holds {} run: ", path_, found_ == FoundRun::State::finished ? "a finished" : "an unfinished");
    lock_.release();
  }
  is_elsewhere_ = !skipped_runs.empty();
  if (is_elsewhere_) notice_ = skipped_runs + "this one is in " + path_;
  if (verdict_ == RunVerdict::start_anew && !is_elsewhere_)
    notice_ = path_ + " holds a run without a checkpoint: it starts anew";
  if (verdict_ == RunVerdict::resume && !is_elsewhere_ && found_ == FoundRun::State::finished) {
    notice_ = path_ + " holds a finished run, which goes on";
  }
}

void RunDirectory::claim(const Node& config) {
  const bool was_held = lock_.held();
  lock_.take(path_);
  bool writes_config = false;
  try {
    if (!was_held && inspect_run(path_, request_.config).state != found_) {
      throw Error(ErrorKind::config, SourceLocation{path_}, "another run has begun there meanwhile", "run again");
    }
    if (verdict_ == RunVerdict::start_anew && unlink(metrics_path().c_str()) != 0 && errno != ENOENT) {
      throw Error(ErrorKind::resource, SourceLocation{metrics_path()},
                  "cannot be removed: " + std::generic_category().message(errno));
    }
    remove_leftovers(path_);
    writes_config = true;
    write_file(path_ + "/config.yaml", to_yaml(config));
    log::add_file(path_ + "/log.txt");
  } catch (...) {
    if (verdict_ == RunVerdict::start && writes_config) unlink((path_ + "/config.yaml").c_str());
    lock_.release_and_remove();
    throw;
  }
}

}  // namespace trainctl
