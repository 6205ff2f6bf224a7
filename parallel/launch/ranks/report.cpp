// The end of a command.
#include "parallel/launch/ranks/report.h"

#include <cerrno>
#include <cstdio>
#include <iostream>
#include <system_error>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/base/output.h"
#include "parallel/launch/ranks/stop.h"

namespace trainctl {
namespace {

std::string last_words(ErrorKind kind, const std::string& words, bool json, const Situation& situation) {
  if (situation.supervised || situation.rank != 0) return "";
  return json ? failure_json({exit_code(kind), words}) : words + "\n";
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

void name_rank(Failure& failure, int rank, const std::string& host) {
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
    log::error(error.what());
    return exit_code(error.kind());
  }
  return failure.exit_code;
}

std::string stop_message(bool json, const Situation& situation) {
  return last_words(ErrorKind::interrupted, "stopped at once", json, situation);
}

std::string unstarted_message(bool json, const Situation& situation) {
  return last_words(ErrorKind::stopped, std::string(unstarted_words), json, situation);
}

}  // namespace trainctl
