// Reports how a command ended.
#include "parallel/launch/ranks/report.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <iostream>
#include <regex>
#include <set>
#include <system_error>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/base/output.h"
#include "parallel/launch/ranks/stop.h"

namespace trainctl {
namespace {

std::string final_text(ErrorKind kind, const std::string& words, bool json, const Situation& situation) {
  if (situation.supervised || situation.rank != 0) return "";
  return json ? failure_json({exit_code(kind), words}) : words + "\n";
}

struct NamedRank {
  int number = 0;
  bool has_host = false;  // whether the error names the rank's host, too
};

// Finds the ranks in "rank 2 did not answer", "ranks 2, 3 did not answer" or "rank 0 on h1, rank 1 on h2 did not
// arrive".
std::vector<NamedRank> named_in(const std::string& error) {
  static const std::regex named(R"(ranks? ([0-9].*?) did not (?:arrive|answer))");
  static const std::regex one(R"((?:^|, |rank )([0-9]{1,9})( on [^ ,]+)?)");
  std::smatch match;
  std::vector<NamedRank> ranks;
  if (!std::regex_search(error, match, named)) return ranks;
  const std::string names = match[1];
  for (std::sregex_iterator each(names.begin(), names.end(), one), end; each != end; ++each) {
    ranks.push_back({std::stoi((*each)[1]), (*each)[2].length() > 0});
  }
  return ranks;
}

}  // namespace

void answer(std::string_view text) {
  finish_output();
  write_output(text);
}

void finish_output() {
  ignore_requests();
  errno = 0;
  const bool arrived = std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.flush().good();
  if (arrived || errno == EPIPE) return;
  throw Error(ErrorKind::resource, "standard output cannot be written: " + std::generic_category().message(errno));
}

void name_rank(Failure& failure, const Situation& situation, int rank, const std::string& host) {
  const bool is_of_files =
      failure.exit_code == exit_code(ErrorKind::config) || failure.exit_code == exit_code(ErrorKind::data);
  const bool names_file =
      std::ranges::any_of(failure.errors, [](const Diagnostic& error) { return !error.location.file.empty(); });
  if (is_of_files && names_file && host.empty() && situation.supervised) return;
  const std::string who = host.empty() ? format(" (rank {})", rank) : format(" (rank {} on {})", rank, host);
  failure.message += who;
  for (Diagnostic& error : failure.errors) error.message += who;
}

int report(const Failure& failure, bool json, const Situation& situation, const FailedRank& failed) {
  ignore_requests();
  const RankStatus status{failure.exit_code, failure.message, failure.errors, failed};
  if (write_status(situation.status_file, status) != StatusWritten::unreachable) return failure.exit_code;
  log::error(failure.message);
  if (!json) return failure.exit_code;
  try {
    write_output(failure_json(failure));
  } catch (const Error& error) {
    const bool is_said = failure.message.find(error.what()) != std::string::npos;  // the failure was this error already
    if (!is_said) log::error(error.what());
    return exit_code(error.kind());
  }
  return failure.exit_code;
}

std::string stop_message(bool json, const Situation& situation) {
  return final_text(ErrorKind::interrupted, "stopped at once", json, situation);
}

std::string unstarted_message(bool json, const Situation& situation) {
  return final_text(ErrorKind::stopped, std::string(unstarted_text), json, situation);
}

std::vector<int> unresponsive_ranks(const std::string& error) {
  std::vector<int> numbers;
  for (const NamedRank& rank : named_in(error)) numbers.push_back(rank.number);
  return numbers;
}

std::string unresponsive_hosts(const std::string& error, int own, const std::vector<std::string>& hosts,
                               bool network_up) {
  std::set<std::string> others(hosts.begin(), hosts.end());
  const std::string& here = hosts[static_cast<std::size_t>(own)];
  others.erase(here);
  const std::vector<NamedRank> ranks = named_in(error);
  if (others.empty() || ranks.empty()) return "";
  if (!network_up) return format("; it is {} that is cut off: no network interface of it is up", here);
  std::string text;
  std::set<std::string> missing;
  for (const NamedRank& rank : ranks) {
    if (rank.number >= static_cast<int>(hosts.size())) return "";
    const std::string& host = hosts[static_cast<std::size_t>(rank.number)];
    if (!rank.has_host) text += format("; rank {} runs on {}", rank.number, host);
    missing.insert(host);
  }
  missing.erase(here);
  if (others.size() > 1 && missing == others) text += format("; no other host answers: {} itself may be cut off", here);
  return text;
}

}  // namespace trainctl
