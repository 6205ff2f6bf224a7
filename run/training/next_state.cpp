// Looks for the newest checkpoint and the newest copy in memory whose files have the lengths that the manifest states.
#include "run/training/next_state.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/memory_folder.h"
#include "io/checkpoint/load.h"
#include "parallel/launch/hosts.h"
#include "parallel/launch/supervisor/supervisor.h"

namespace trainctl {
namespace fs = std::filesystem;
namespace {

bool has_whole_files(const CheckpointFolder& folder) {
  try {
    const Manifest manifest = read_manifest(folder.path);
    return std::all_of(manifest.files.begin(), manifest.files.end(), [&](const Manifest::File& file) {
      std::error_code error;
      const auto bytes = fs::file_size(folder.path + "/" + file.name, error);
      return !error && static_cast<std::int64_t>(bytes) == file.seal.bytes;
    });
  } catch (const Error&) {  // the manifest is damaged
    return false;
  }
}

std::optional<CheckpointFolder> newest_whole(const std::string& directory) {
  for (const CheckpointFolder& folder : newest_checkpoints_first(directory)) {
    if (has_whole_files(folder)) return folder;
  }
  return {};
}

}  // namespace

std::string next_state_of(const RestartingRun& run) {
  try {
    const std::optional<CheckpointFolder> stored = newest_whole(run.directory);
    const std::string memory = memory_folder_of(run.directory);
    std::optional<CheckpointFolder> copy;
    if (are_copies_of(memory, run.launch)) copy = newest_whole(memory);
    if (copy && copy->step > (stored ? stored->step : -1)) {
      const char* const or_later = run.one_host ? "" : ", or a later one of another host";
      return format("the copy of step {} in the memory of {}{}", copy->step, this_host(), or_later);
    }
    if (stored) return "checkpoint " + stored->path;
    return "the state with which it began, since no checkpoint was written yet";
  } catch (const Error&) {
    return "";
  }
}

}  // namespace trainctl
