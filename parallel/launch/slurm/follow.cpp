// Asks SLURM for the state of a job every few seconds, and copies what its log has gained.
#include "parallel/launch/slurm/follow.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <string_view>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/base/output.h"

namespace trainctl {
namespace {

constexpr int poll_milliseconds = 2000;
constexpr double longest_silence = 120;  // seconds without an answer from SLURM

// Returns `text` without the incomplete UTF-8 character at its end, of one to three bytes, if there is one.
std::string_view without_begun_character(std::string_view text) {
  constexpr std::size_t longest = 3;
  const std::size_t tail = text.size() - std::min(text.size(), longest);
  for (std::size_t at = tail; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const std::size_t length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    if (at > 0 && at + length > text.size()) return text.substr(0, at);
  }
  return text;
}

// Copies a log to standard output as it grows.
class GrowingLog {
 public:
  explicit GrowingLog(std::string path) : path_(std::move(path)) {}

  // Writes the text that was added since the last call.
  void show() {
    std::error_code failure;
    const auto size = std::filesystem::file_size(path_, failure);
    if (failure || static_cast<std::int64_t>(size) <= shown_) return;
    const InputFile file(path_);
    std::array<char, 65536> buffer{};
    while (const std::int64_t count = file.read_some(shown_, buffer.data(), std::ssize(buffer))) {
      const std::string_view text = without_begun_character({buffer.data(), static_cast<std::size_t>(count)});
      write_output(text);
      shown_ += std::ssize(text);
      if (std::ssize(text) < count && count < std::ssize(buffer)) break;  // the rest of the character is still to come
    }
  }

 private:
  std::string path_;
  std::int64_t shown_ = 0;
};

// Waits for `milliseconds`. Throws Error{interrupted} on a request to stop.
void wait_for_requests(const Signals& signals, const std::string& job, int milliseconds) {
  pollfd request{signals.descriptor(), POLLIN, 0};
  poll(&request, 1, milliseconds);
  while (const int signal = signals.next()) {
    if (signal == SIGCHLD) continue;
    throw Error(ErrorKind::interrupted, format("job {} continues, but is no longer followed", job),
                format("`scancel {}` ends it", job));
  }
}

// Logs how the state of the job has changed.
void say(const std::string& job, const JobState& now, const JobState& before) {
  const std::string why = now.reason.empty() ? "" : format(" ({})", now.reason);
  if (now.name == "PENDING") {
    const bool has_run = !before.name.empty() && before.name != "PENDING";
    if (now.restarts > before.restarts || has_run) {
      log::info(format("job {} is queued again{}", job, why));
    } else if (now.may_never_start() && now.reason != before.reason) {
      log::warning(
          format("job {} waits{}, and may never start: cancel it (`scancel {}`), and request less", job, why, job));
    } else if (!why.empty() && now.reason != before.reason) {
      log::info(format("job {} waits{}", job, why));
    }
  } else if (now.name == before.name) {
    return;
  } else if (now.name == "RUNNING") {
    log::info(format("job {} runs", job));
  } else if (now.name == "COMPLETED") {
    log::info(format("job {} has completed", job));
  } else if (now.ended()) {
    const std::string how = now.exit_code != 0 ? format(", exit code {}", now.exit_code)
                            : now.signal != 0  ? format(", by signal {}", now.signal)
                                               : "";
    log::error(format("job {} has ended: {}{}", job, now.name, how));
  }
}

}  // namespace

void tell_whether_it_starts(const Signals& signals, const std::string& job) {
  constexpr int looks = 15, between = 200;  // 3 s
  for (int i = 0; i < looks; ++i) {
    const std::optional<JobState> now = ask_for_job(signals, job);
    if (now && (now->name != "PENDING" || !now->reason.empty())) return say(job, *now, {});
    wait_for_requests(signals, job, between);
  }
}

JobState follow_job(const Signals& signals, const std::string& job, const std::string& log_path, bool hides_log) {
  GrowingLog text(log_path);
  JobState before;
  double answered = seconds_now();
  for (;;) {
    const std::optional<JobState> now = ask_for_job(signals, job);
    if (!hides_log) text.show();
    if (now) {
      answered = seconds_now();
      say(job, *now, before);
      if (now->ended()) return *now;
      before = *now;
    } else if (seconds_now() - answered > longest_silence) {
      throw Error(ErrorKind::peer, format("SLURM has not reported on job {} for {:.0f} s", job, longest_silence),
                  format("its log is {}; `sacct -j {}` may show how it ended", log_path, job));
    }
    wait_for_requests(signals, job, poll_milliseconds);
  }
}

}  // namespace trainctl
