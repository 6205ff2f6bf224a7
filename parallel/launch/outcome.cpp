// Reading mpirun's messages.
#include "parallel/launch/outcome.h"

#include <string.h>

#include <algorithm>
#include <array>
#include <regex>

#include "core/base/error.h"
#include "core/base/format.h"

namespace trainctl {
namespace {

constexpr std::array our_codes = {1, 2, 3, 4, 5, 6, 75, 130};

bool is_ours(int code) { return std::find(our_codes.begin(), our_codes.end(), code) != our_codes.end(); }

// "rank 1 on n2 was killed by signal 9 (Killed)", or "" where the report names no death.
std::string describe(const MpirunReport& report) {
  if (report.host_lost) return format("host {} was lost: it, or the network to it, failed", report.host);
  if (report.host_unreachable) {
    return "not all hosts could be reached; `ssh HOST mpirun --version` must work for each without a password";
  }
  if (!report.rank) return "";
  std::string who = format("rank {}", *report.rank);
  if (!report.host.empty()) who += " on " + report.host;
  if (report.signal) {
    who += format(" was killed by signal {} ({})", *report.signal, strsignal(*report.signal));
    return *report.signal == 9 ? who + "; if nobody did so, its host ran out of memory: see dmesg there" : who;
  }
  return report.exit_code ? who + format(" ended with exit code {}", *report.exit_code) : "";
}

std::string without_banners(const std::string& messages) {
  static const std::regex dashes("(^|\n)-{20,}");
  std::string text = std::regex_replace(messages, dashes, "");
  text.erase(0, std::min(text.find_first_not_of('\n'), text.size()));
  text.erase(text.find_last_not_of('\n') + 1);
  return text;
}

}  // namespace

MpirunReport read_report(std::string_view messages) {
  static const std::regex killed(R"(process rank (\d+) with PID \d+ on node (\S+) exited on signal (\d+))");
  static const std::regex ended(R"(Process name: \[\[\d+,\d+\],(\d+)\]\s+Exit code:\s+(\d+))");
  static const std::regex aborted(
      R"(MPI_ABORT was invoked on rank (\d+) in communicator[^\n]*\s+with errorcode (\d+))");
  static const std::regex lost(R"(Remote daemon: \[\[\d+,\d+\],\d+\] on node (\S+))");
  const std::string text(messages);
  MpirunReport report;
  report.host_unreachable = text.find("unable to reliably start one or more daemons") != std::string::npos;
  std::smatch match;
  if (std::regex_search(text, match, aborted) || std::regex_search(text, match, ended)) {
    report.rank = std::stoi(match[1]);
    report.exit_code = std::stoi(match[2]);
  } else if (std::regex_search(text, match, lost)) {
    report.host = match[1];
    report.host_lost = true;
  } else if (std::regex_search(text, match, killed)) {
    report.rank = std::stoi(match[1]);
    report.host = match[2];
    report.signal = std::stoi(match[3]);
  }
  return report;
}

RankStatus conclude(const std::optional<RankStatus>& status, const std::string& messages, int mpirun_code) {
  const int peer_failed = exit_code(ErrorKind::peer);
  if (status && status->exit_code != peer_failed) return *status;
  if (!status && mpirun_code == 0) return {};
  const MpirunReport report = read_report(messages);
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
  return {peer_failed, said.empty() ? format("mpirun ended with code {} and without a word", mpirun_code)
                                    : "the ranks could not be run; mpirun says:\n" + said};
}

}  // namespace trainctl
