// Finds the run that a name belongs to, and its best checkpoint.
#include "run/job/trained_network.h"

#include <filesystem>
#include <utility>

#include "core/base/error.h"
#include "core/base/file_names.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "io/metrics/find_run.h"
#include "run/config_use.h"
#include "run/job/pretrained.h"
#include "run/run_spec.h"

namespace trainctl {

std::string run_of(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return path;
  if (has_ending(path, {".safetensors"}) || std::filesystem::path(path).filename() == "manifest.json") {
    throw Error(ErrorKind::config, SourceLocation{path}, "is one of the files of a checkpoint",
                "name the folder of the checkpoint");
  }
  const RunSpec spec = load_run_spec(path);
  return newest_run(spec.name, Value<RunSpec>::write(spec), path).path;
}

std::string best_of_run(const std::string& run) {
  const std::string best = run + "/checkpoints/best", last = run + "/checkpoints/last";
  std::error_code ignored;
  if (!std::filesystem::is_directory(run, ignored)) {
    throw Error(ErrorKind::config, SourceLocation{run}, "there is no run directory of this name",
                "give a folder that `trainctl run` has made, such as runs/NAME");
  }
  if (std::filesystem::is_directory(best, ignored)) return best;
  if (!std::filesystem::is_directory(last, ignored)) return run;
  log::info(format("{} has no best checkpoint: its last one is read", run));
  return last;
}

NetworkWeights TrainedNetwork::load(const RunSpec& spec, const std::string& verb) const {
  if (is_untrained()) {
    begin_untrained(spec, path);
    return load_untrained(spec);
  }
  LoadedCheckpoint checkpoint = load_named_checkpoint(exists(path + "/checkpoints") ? best_of_run(path) : path);
  log::info(format("{} {} (step {})", verb, checkpoint.path, checkpoint.manifest.step));
  return {std::move(checkpoint)};
}

void begin_untrained(const RunSpec& spec, const std::string& config_file) {
  const Node config = Value<RunSpec>::write(spec);
  const NewestRun found = find_newest_run(spec.name, config);
  const std::string& weights = spec.model.weights->file.value.text;
  if (found.other.empty()) {
    log::info(format("{} has no run with a checkpoint: uses the pretrained weights of {}", config_file, weights));
  } else {
    log::warning(format("the model of {} differs ({}): uses the pretrained weights of {}", found.other,
                        found.differences.front(), weights));
  }
}

TrainedNetwork find_trained(const std::string& name) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(name, ignored)) {
    ConfigFiles files;
    const RunSpec spec = load_run_spec(name, {}, files, ConfigUse::prediction);
    const Node config = Value<RunSpec>::write(spec);
    if (!spec.model.weights) {
      const std::string run = newest_run(spec.name, config, name).path;
      return {run, run};
    }
    const NewestRun found = find_newest_run(spec.name, config);
    return found.run ? TrainedNetwork{found.run->path, found.run->path} : TrainedNetwork{"", name};
  }
  TrainedNetwork found{"", name};
  found.run = run_of_checkpoint(found.path);
  if (!found.run.empty()) return found;
  throw Error(ErrorKind::config, found.path + " is not a run directory, a checkpoint of a run or a config",
              "give a run directory such as runs/NAME, or a folder in its `checkpoints`");
}

}  // namespace trainctl
