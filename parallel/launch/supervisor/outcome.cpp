// Derives the outcome of an attempt from the ranks' status and mpirun's messages.
#include "parallel/launch/supervisor/outcome.h"

#include <signal.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <system_error>
#include <vector>

#include "core/base/error.h"
#include "core/base/format.h"
#include "parallel/launch/ranks/report.h"

namespace trainctl {
namespace {

// Returns the kind of an outcome by its exit code alone; empty if trainctl has no such exit code.
std::optional<OutcomeKind> kind_of(int code) {
  constexpr std::array<std::pair<ErrorKind, OutcomeKind>, 8> kinds = {
      {{ErrorKind::internal, OutcomeKind::failed},
       {ErrorKind::config, OutcomeKind::config_error},
       {ErrorKind::data, OutcomeKind::data_error},
       {ErrorKind::diverged, OutcomeKind::diverged},
       {ErrorKind::peer, OutcomeKind::peer_error},
       {ErrorKind::resource, OutcomeKind::resource_error},
       {ErrorKind::stopped, OutcomeKind::stopped},
       {ErrorKind::interrupted, OutcomeKind::interrupted}}};
  if (code == 0) return OutcomeKind::completed;
  for (const auto& [error, kind] : kinds) {
    if (exit_code(error) == code) return kind;
  }
  return {};
}

bool is(const std::optional<int>& code, ErrorKind kind) { return code == exit_code(kind); }

// Returns the outcome if mpirun reports that a rank or a host has failed, otherwise an empty value.
std::optional<Outcome> failure_in(const MpirunReport& report, bool memory_ran_out) {
  Outcome failure{.kind = OutcomeKind::rank_exited, .rank = report.rank, .host = report.host, .signal = report.signal};
  std::string& text = failure.end.message;
  failure.end.exit_code = exit_code(ErrorKind::peer);
  if (report.host_lost) {
    failure.kind = OutcomeKind::host_lost;
    text = format("host {} was lost: the host or the network to it failed", report.host);
  } else if (!report.not_reached.empty()) {
    failure.kind = OutcomeKind::host_unreachable;
    text = format("{} cannot connect to {}: all TCP ports must be open between the hosts of a run, in both directions",
                  report.host, report.not_reached);
  } else if (report.host_unreachable) {
    failure.kind = OutcomeKind::host_unreachable;
    text = "not all hosts could be reached; `ssh HOST true` must work for each without a password";
  } else if (report.rank || report.process) {
    text = report.rank ? format("rank {}", *report.rank) : "a rank";
    if (!report.host.empty()) text += " on " + report.host;
    if (report.signal) {
      failure.kind = OutcomeKind::rank_killed;
      text += format(" was killed by signal {} ({})", *report.signal, strsignal(*report.signal));
      if (*report.signal == SIGKILL) {
        text += memory_ran_out ? "; the kernel has killed a process of this host because memory ran out"
                               : "; if nobody sent the signal, the host ran out of memory: see dmesg there";
      }
    } else if (report.exit_code) {
      text += format(" ended with exit code {}", *report.exit_code);
    } else {
      return {};
    }
  } else {
    return {};
  }
  return failure;
}

void add_step(Outcome& outcome, const std::optional<std::int64_t>& step) {
  outcome.step = step;
  if (step && outcome.kind != OutcomeKind::host_unreachable)
    outcome.end.message += format("; the last known step is {}", *step);
}

// A shortage of a resource, and the messages by which it is recognized.
struct Shortage {
  std::regex pattern;
  const char* message;
  const char* remedy;
};

const std::vector<Shortage>& shortages() {
  static const std::vector<Shortage> all = {
      {std::regex("system limit (exceeded )?on number of (children|processes)|Unable to start listen thread|"
                  "progress_thread_start failed|pmix_progress_threads|Resource temporarily unavailable"),
       "no more processes or threads can be started",
       "raise the limit of the user (ulimit -u) or of the container, or start fewer ranks"},
      {std::regex("system limit on number of (pipes|files)|Too many open files"), "the limit on open files is too low",
       "raise the limit (ulimit -n), or start fewer ranks"},
      {std::regex(
           "not enough space for|No space left on device|Disk quota exceeded|OUT-OF-RESOURCE in file \\S*dstore"),
       "no space is left for the files of mpirun and its ranks",
       "free some space in TMPDIR and /dev/shm, or set TMPDIR to another folder"},
      {std::regex("Cannot allocate memory|failed to map segment|dstore_segment|[Oo]ut of memory"),
       "memory ran out as the ranks started",
       "raise the limit (ulimit -v, or the container's limit), or start fewer ranks"},
      {std::regex("Unable to get the current working directory"), "the working directory cannot be used",
       "change to an existing folder (cd), and start again"},
  };
  return all;
}

// Returns the host that a message names, or "".
std::string host_of(const std::string& text) {
  static const std::regex named(R"((Node|Local host):\s+(\S+))");
  static const std::regex in_front(R"((^|\n)\[([A-Za-z0-9._-]+):\d+\])");
  std::smatch match;
  if (std::regex_search(text, match, named) || std::regex_search(text, match, in_front)) return match[2];
  return "";
}

// Returns the first lines that are neither empty nor locations in OpenMPI's source.
std::string first_lines(const std::string& text) {
  constexpr int max_lines = 3;
  std::istringstream lines(text);
  std::string all;
  int count = 0;
  for (std::string line; count < max_lines && std::getline(lines, line);) {
    if (line.empty() || line.find("ORTE_ERROR_LOG") != std::string::npos) continue;
    all += (all.empty() ? "" : "\n") + line;
    ++count;
  }
  return all.empty() ? text.substr(0, text.find('\n')) : all;
}

std::string without_banners(const std::string& messages) {
  static const std::regex dashes("(^|\n)-{20,}");
  std::string text = std::regex_replace(messages, dashes, "");
  text.erase(0, std::min(text.find_first_not_of('\n'), text.size()));
  text.erase(text.find_last_not_of('\n') + 1);
  return text;
}

// Returns the outcome according to the status of a rank, combined with mpirun's report.
Outcome outcome_by_status(const AttemptTraces& traces) {
  const RankStatus& status = *traces.status;
  const FailedRank& failed = status.failed;
  const std::optional<std::int64_t> step = failed.step ? failed.step : traces.step;
  Outcome reported{.kind = kind_of(status.exit_code).value_or(OutcomeKind::failed),
                   .end = {status.exit_code, status.message, status.errors},
                   .rank = failed.rank,
                   .host = failed.host,
                   .step = step};
  if (!is(status.exit_code, ErrorKind::peer)) return reported;
  if (failed.is_silent) reported.kind = OutcomeKind::rank_silent;
  if (!traces.report.signal && !traces.report.host_lost) return reported;
  std::optional<Outcome> failure =
      failure_in(traces.report, traces.memory_ran_out);  // a rank that lost its peer does not know the cause
  if (!failure) return reported;
  add_step(*failure, step);
  if (!status.message.empty()) failure->end.message += "\n" + status.message;
  return *failure;
}

Outcome outcome_by_mpirun(const AttemptTraces& traces) {
  const MpirunReport& report = traces.report;
  const int code = traces.mpirun_code;
  // Ranks on other hosts write no status file: they have printed their message, and their exit code shows the kind.
  if (const auto kind = kind_of(report.exit_code.value_or(0)); kind && report.exit_code.value_or(0) != 0) {
    return {.kind = *kind, .end = {*report.exit_code}, .rank = report.rank, .host = report.host, .step = traces.step};
  }
  if (std::optional<Outcome> failure = failure_in(report, traces.memory_ran_out)) {
    add_step(*failure, traces.step);
    return *failure;
  }
  if (const auto kind = kind_of(code); kind && code > 1) {  // mpirun's own errors also return 1
    return {.kind = *kind, .end = {code}, .step = traces.step};
  }
  Outcome failed{.kind = OutcomeKind::launcher_failed, .end = {exit_code(ErrorKind::peer)}, .step = traces.step};
  std::string& message = failed.end.message;
  const std::string text = without_banners(traces.messages);
  constexpr int by_signal = 128;  // a process that signal n killed has the code 128 + n, as in a shell
  const int signal = text.empty() && code > by_signal ? code - by_signal : 0;
  if (code == 0) {
    message =
        "mpirun ended with code 0, but no rank has reported the end of the run; check which mpirun is the first in "
        "PATH (trainctl doctor)";
  } else if (signal == SIGKILL || signal == SIGSEGV || signal == SIGABRT || signal == SIGBUS) {
    failed.kind = OutcomeKind::launcher_killed;
    failed.signal = signal;
    message = format("mpirun was killed by signal {} ({}), and the ranks ended with it", signal, strsignal(signal));
  } else if (text.empty()) {
    message = format("mpirun ended with code {} and without a message", code);
  } else {
    message = "the ranks could not be run; mpirun's first messages (all of them with -v):\n" + first_lines(text);
  }
  return failed;
}

// Returns whether a run that was asked to stop ended before its ranks trained. In this case a rank ends immediately
// with exit code 75, and its launcher ends the other ranks.
bool was_unstarted(const AttemptTraces& traces) {
  const MpirunReport& report = traces.report;
  const bool one_stopped = is(report.exit_code, ErrorKind::stopped);
  if (traces.status) return is(traces.status->exit_code, ErrorKind::peer) && one_stopped;
  // MPICH's launcher may end with code 0 although the stop signal that it forwarded has ended the ranks.
  const bool reported_nothing = traces.mpirun_code == 0 && !report.exit_code && !report.signal;
  return one_stopped || is(traces.mpirun_code, ErrorKind::stopped) || report.signal == SIGUSR1 || reported_nothing;
}

// Returns the last lines of a text, limited to max_lines and max_bytes.
std::string end_of(const std::string& text) {
  constexpr std::size_t max_bytes = 4096;
  constexpr int max_lines = 10;
  std::size_t begin = text.find_last_not_of('\n') + 1;
  const std::size_t end = begin;
  for (int line = 0; line < max_lines && begin > 0 && begin != std::string::npos; ++line) {
    const std::size_t before = text.rfind('\n', begin - 1);
    begin = before == std::string::npos ? 0 : before;
  }
  if (begin < end && text[begin] == '\n') ++begin;
  begin = std::max(begin, end > max_bytes ? end - max_bytes : 0);
  return text.substr(begin, end - begin);
}

}  // namespace

std::string_view name_of(OutcomeKind kind) {
  constexpr std::array<std::string_view, 21> names = {
      "completed",       "stopped",         "stopped_unstarted", "interrupted",      "failed",        "config_error",
      "data_error",      "diverged",        "resource_error",    "peer_error",       "rank_silent",   "rank_hung",
      "rank_killed",     "rank_exited",     "host_lost",         "host_unreachable", "start_overdue", "stop_overdue",
      "launcher_failed", "launcher_killed", "launcher_suspended"};
  return names[static_cast<std::size_t>(kind)];
}

std::string to_string(const Outcome& outcome) {
  std::string text = format("{} (exit code {})", name_of(outcome.kind), outcome.end.exit_code);
  std::string where = outcome.rank ? format(", rank {}", *outcome.rank) : "";
  if (!outcome.host.empty()) where += (outcome.rank ? " on " : ", host ") + outcome.host;
  if (outcome.signal) where += format(", signal {}", *outcome.signal);
  if (outcome.step) where += format(", step {}", *outcome.step);
  return where.empty() ? text : text + ":" + where.substr(1);
}

Outcome outcome_of(const AttemptTraces& traces) {
  if (!traces.status && traces.mpirun_code != 0) {
    if (const auto shortage = find_shortage(traces.messages + traces.held_errors)) {
      return {.kind = OutcomeKind::resource_error, .end = *shortage};
    }
  }
  Outcome outcome = traces.status ? outcome_by_status(traces) : outcome_by_mpirun(traces);
  if (traces.asked_to_stop && was_unstarted(traces)) {
    outcome = {.kind = OutcomeKind::stopped_unstarted,
               .end = {exit_code(ErrorKind::stopped), std::string(unstarted_text)}};
  }
  note_output_error(outcome, traces.output_error);
  return outcome;
}

void note_output_error(Outcome& outcome, int error) {
  if (error == 0 || error == EPIPE || outcome.end.exit_code != 0) return;
  outcome.kind = OutcomeKind::resource_error;
  outcome.end = {exit_code(ErrorKind::resource),
                 "standard output cannot be written: " + std::generic_category().message(error)};
}

std::optional<Failure> find_shortage(const std::string& text) {
  for (const Shortage& shortage : shortages()) {
    std::smatch match;
    if (!std::regex_search(text, match, shortage.pattern)) continue;
    const std::string host = host_of(text);
    const Error error(ErrorKind::resource, host.empty() ? shortage.message : format("{} on {}", shortage.message, host),
                      shortage.remedy);
    return Failure{exit_code(error.kind()), error.what()};
  }
  return {};
}

std::string newest_checkpoint(const std::string& log_path) {
  namespace fs = std::filesystem;
  if (log_path.empty()) return "";
  const fs::path folder = fs::path(log_path).parent_path() / "checkpoints";
  std::error_code none;
  const fs::path target = fs::read_symlink(folder / "last", none);
  if (none) return "; no checkpoint was written yet";
  return format("; the newest checkpoint is {}", (folder / target).lexically_normal().string());
}

std::string last_lines(const std::string& log_path, std::optional<int> rank, const std::string& written) {
  constexpr std::int64_t enough = 8192;
  const std::string path =
      log_path.empty() || !rank ? ""
      : *rank == 0              ? log_path
                   : (std::filesystem::path(log_path).parent_path() / format("logs/rank-{}.log", *rank)).string();
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return end_of(written);
  const std::int64_t size = file.tellg();
  file.seekg(std::max<std::int64_t>(0, size - enough));
  std::ostringstream text;
  text << file.rdbuf();
  return end_of(text.str());
}

}  // namespace trainctl
