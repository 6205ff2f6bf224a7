// Decides by the files of a run directory whether its run goes on.
#include "io/metrics/absent_supervisor.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/base/format.h"
#include "core/base/supervisor_lock.h"
#include "io/metrics/metrics_jsonl.h"

namespace trainctl {
namespace {

namespace fs = std::filesystem;

// Whether a file of the run was written a short time ago, so that its ranks may have trained then.
bool was_written_lately(const std::string& folder) {
  constexpr std::chrono::minutes lately(10);
  for (const char* name : {"/lock", "/metrics.jsonl", "/log.txt"}) {
    std::error_code none;
    const fs::file_time_type written = fs::last_write_time(folder + name, none);
    if (!none && fs::file_time_type::clock::now() - written < lately) return true;
  }
  return false;
}

// Whether the record of the run says that it has ended. A rank also records a failure after which the ranks start
// again.
bool has_ended(const std::string& folder) {
  try {
    const std::optional<std::string> status = final_status(folder + "/metrics.jsonl");
    return status && *status != "failed";
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::optional<std::chrono::milliseconds> time_to_start_again(std::chrono::milliseconds timeout,
                                                             std::chrono::milliseconds start_timeout) {
  constexpr std::chrono::milliseconds least(60'000);
  if (start_timeout.count() <= 0) return {};
  return std::max({least, timeout, start_timeout});
}

MayStartAgain::MayStartAgain(const std::string& folder, const Generation& last)
    : MayStartAgain(format("the run in {} may start again from host {}", folder, host_of_launch(last.launch))) {}

MayStartAgain::MayStartAgain(std::string text)
    : Error(ErrorKind::config, text, "wait until it has ended, or choose another directory (--run-dir)"),
      text_(std::move(text)) {}

bool may_start_again(const std::string& folder, const Generation& last) {
  if (!last.restarts || last_supervisor_of(folder) == last.launch || is_launch_of_this_host(last.launch)) return false;
  return was_written_lately(folder) && !has_ended(folder);
}

}  // namespace trainctl
