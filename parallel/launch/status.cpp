// The status file: a line with the exit code, one with the errors and their places, then the message.
#include "parallel/launch/status.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <sstream>

namespace trainctl {
namespace {

std::string ready_path(const std::string& status_path) { return status_path + ".ready"; }
std::string log_path(const std::string& status_path) { return status_path + ".log"; }

}  // namespace

StatusWritten write_status(const std::string& path, const RankStatus& status) {
  if (path.empty()) return StatusWritten::unreachable;
  const std::string temporary = path + "." + std::to_string(getpid());
  std::ofstream file(temporary);
  file << status.exit_code << '\n' << diagnostics_json(status.errors) << status.message;
  file.close();
  if (file.fail()) return StatusWritten::unreachable;
  const bool first = link(temporary.c_str(), path.c_str()) == 0;  // fails where there is one already
  const bool another = !first && errno == EEXIST;
  unlink(temporary.c_str());
  return first ? StatusWritten::yes : another ? StatusWritten::another_was_first : StatusWritten::unreachable;
}

std::optional<RankStatus> read_status(const std::string& path) {
  std::ifstream file(path);
  RankStatus status;
  if (!(file >> status.exit_code)) return {};
  file.ignore(1);
  std::string errors;
  std::getline(file, errors);
  status.errors = read_diagnostics(errors);
  std::ostringstream message;
  if (file.peek() != std::ifstream::traits_type::eof()) message << file.rdbuf();
  status.message = message.str();
  return status;
}

void mark_ready(const std::string& status_path, const std::vector<int>& processes) {
  const std::string path = ready_path(status_path), temporary = path + ".new";
  std::ofstream file(temporary);
  for (const int process : processes) file << process << '\n';
  file.close();
  rename(temporary.c_str(), path.c_str());
}

bool is_ready(const std::string& status_path) { return access(ready_path(status_path).c_str(), F_OK) == 0; }

std::vector<int> marked_processes(const std::string& status_path) {
  std::ifstream file(ready_path(status_path));
  std::vector<int> processes;
  for (int process = 0; file >> process;) processes.push_back(process);
  return processes;
}

void write_log_path(const std::string& status_path, const std::string& path) {
  std::ofstream(log_path(status_path)) << path;
}

std::string read_log_path(const std::string& status_path) {
  std::string path;
  std::getline(std::ifstream(log_path(status_path)), path);
  return path;
}

}  // namespace trainctl
