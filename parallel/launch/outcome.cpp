// What the ranks' status and mpirun's words mean to a user.
#include "parallel/launch/outcome.h"

#include <signal.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <regex>
#include <sstream>
#include <vector>

#include "core/base/error.h"
#include "core/base/format.h"

namespace trainctl {
namespace {

constexpr std::array our_codes = {1, 2, 3, 4, 5, 6, 75, 130};

bool is_ours(int code) { return std::find(our_codes.begin(), our_codes.end(), code) != our_codes.end(); }

// "rank 1 on n2 was killed by signal 9 (Killed)", or "" where the report names no death.
std::string describe(const MpirunReport& report) {
  if (report.host_lost) return format("host {} was lost: it, or the network to it, failed", report.host);
  if (!report.not_reached.empty()) {
    return format("{} cannot connect to {}: all TCP ports must be open between the hosts of a run, in both directions",
                  report.host, report.not_reached);
  }
  if (report.host_unreachable) {
    return "not all hosts could be reached; `ssh HOST true` must work for each without a password";
  }
  if (!report.rank && !report.process) return "";
  std::string who = report.rank ? format("rank {}", *report.rank) : "a rank";
  if (!report.host.empty()) who += " on " + report.host;
  if (report.signal) {
    who += format(" was killed by signal {} ({})", *report.signal, strsignal(*report.signal));
    return *report.signal == 9 ? who + "; if nobody did so, its host ran out of memory: see dmesg there" : who;
  }
  return report.exit_code ? who + format(" ended with exit code {}", *report.exit_code) : "";
}

// A shortage, and the words that it is known by.
struct Shortage {
  std::regex known_by;
  const char* message;
  const char* remedy;
};

const std::vector<Shortage>& shortages() {
  static const std::vector<Shortage> all = {
      {std::regex("system limit (exceeded )?on number of (children|processes)|Unable to start listen thread|"
                  "progress_thread_start failed|pmix_progress_threads|Resource temporarily unavailable"),
       "no more processes or threads can be started",
       "raise the limit of the user (ulimit -u) or of the container, or start fewer ranks"},
      {std::regex("system limit on number of (pipes|files)|Too many open files"), "too few files may be open at once",
       "raise the limit (ulimit -n), or start fewer ranks"},
      {std::regex(
           "not enough space for|No space left on device|Disk quota exceeded|OUT-OF-RESOURCE in file \\S*dstore"),
       "no room is left for the files of mpirun and its ranks",
       "free some space in TMPDIR and /dev/shm, or set TMPDIR to another folder"},
      {std::regex("Cannot allocate memory|failed to map segment|dstore_segment|[Oo]ut of memory"),
       "memory ran out as the ranks started",
       "raise the limit (ulimit -v, or that of the container), or start fewer ranks"},
      {std::regex("Unable to get the current working directory"), "the working directory cannot be used",
       "go to a folder that is there (cd), and start again"},
  };
  return all;
}

// The host that a message names, or "".
std::string host_of(const std::string& text) {
  static const std::regex named(R"((Node|Local host):\s+(\S+))");
  static const std::regex in_front(R"((^|\n)\[([A-Za-z0-9._-]+):\d+\])");
  std::smatch match;
  if (std::regex_search(text, match, named) || std::regex_search(text, match, in_front)) return match[2];
  return "";
}

// The first lines that are neither empty nor locations in OpenMPI's source.
std::string first_lines(const std::string& text) {
  constexpr int most = 3;
  std::istringstream lines(text);
  std::string all;
  int count = 0;
  for (std::string line; count < most && std::getline(lines, line);) {
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

}  // namespace

std::optional<RankStatus> find_shortage(const std::string& text) {
  for (const Shortage& shortage : shortages()) {
    std::smatch match;
    if (!std::regex_search(text, match, shortage.known_by)) continue;
    const std::string host = host_of(text);
    const Error error(ErrorKind::resource, host.empty() ? shortage.message : format("{} on {}", shortage.message, host),
                      shortage.remedy);
    return RankStatus{exit_code(error.kind()), error.what()};
  }
  return {};
}

RankStatus final_status(const std::optional<RankStatus>& status, const MpirunReport& report,
                        const std::string& messages, int mpirun_code) {
  const int peer_failed = exit_code(ErrorKind::peer);
  if (status && status->exit_code != peer_failed) return *status;
  const std::string cause = describe(report);
  if (status) {  // a rank that saw its peer go does not know why
    if (!report.signal && !report.host_lost) return *status;
    return {peer_failed, status->message.empty() ? cause : cause + "\n" + status->message};
  }
  // Ranks on other hosts leave no file: they have printed their message, and their exit code tells.
  if (report.exit_code && is_ours(*report.exit_code)) return {*report.exit_code, ""};
  if (!cause.empty()) return {peer_failed, cause};
  if (mpirun_code != 1 && is_ours(mpirun_code)) return {mpirun_code, ""};  // 1 is also what mpirun's own errors return
  const std::string said = without_banners(messages);
  if (mpirun_code == 0) {
    return {peer_failed,
            "mpirun ended with code 0, but no rank has said that the run is done; see which mpirun is the "
            "first in PATH (trainctl doctor)"};
  }
  constexpr int by_signal = 128;  // and its number: as a shell has it
  const int signal = said.empty() && mpirun_code > by_signal ? mpirun_code - by_signal : 0;
  if (signal == SIGKILL || signal == SIGSEGV || signal == SIGABRT || signal == SIGBUS) {
    return {peer_failed,
            format("mpirun was killed by signal {} ({}), and the ranks ended with it", signal, strsignal(signal))};
  }
  return {peer_failed, said.empty()
                           ? format("mpirun ended with code {} and without a word", mpirun_code)
                           : "the ranks could not be run; mpirun says (all of it with -v):\n" + first_lines(said)};
}

bool stopped_unstarted(const std::optional<RankStatus>& status, const MpirunReport& report, int mpirun_code) {
  const int stopped = exit_code(ErrorKind::stopped);
  if (status) return status->exit_code == exit_code(ErrorKind::peer) && report.exit_code == stopped;
  // MPICH's launcher may itself end with 0 when the ranks end by the request that it has passed on.
  const bool silent = mpirun_code == 0 && !report.exit_code && !report.signal;
  return report.exit_code == stopped || mpirun_code == stopped || report.signal == SIGUSR1 || silent;
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

}  // namespace trainctl
