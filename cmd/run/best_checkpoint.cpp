// Best, or last.
#include "cmd/run/best_checkpoint.h"

#include <filesystem>

#include "core/base/format.h"
#include "core/base/log.h"

namespace trainctl {

std::string best_of_run(const std::string& run) {
  const std::string best = run + "/checkpoints/best", last = run + "/checkpoints/last";
  std::error_code ignored;
  if (std::filesystem::is_directory(best, ignored)) return best;
  log::info(format("{} has no best checkpoint: its last one is read", run));
  return std::filesystem::is_directory(last, ignored) ? last : run;
}

}  // namespace trainctl
