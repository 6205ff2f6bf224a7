// The status file has a line with the exit code and the failed rank, a line with the errors and their locations, and
// the message. Notes are separate files with the same path and a suffix.
#include "parallel/launch/ranks/status.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "core/base/failure.h"
#include "core/base/format.h"
#include "core/base/json.h"

namespace trainctl {
namespace {

// A note is a file of one line, except that refused_note has a line of JSON for each request. Its path is the status
// file's with one of these suffixes.
constexpr std::string_view ready_note = ".ready", log_note = ".log", stop_time_note = ".stop-time", step_note = ".step";
constexpr std::string_view resizing_note = ".resizing", refused_note = ".refused";
constexpr std::string_view end_note = ".end";  // the first line of a status that comes from another host
// The beginning of a note on standard error: a text that no program writes by chance.
constexpr std::string_view note_mark =
    "\x1e"
    "trainctl-note ";

std::string note_path(const std::string& status_path, std::string_view note) { return status_path + std::string(note); }

bool is_here(const std::string& status_path) {
  return access(std::filesystem::path(status_path).parent_path().c_str(), F_OK) == 0;
}

// Writes a note atomically, so that a reader sees the whole text. A note that cannot be written is left out.
void write_note(const std::string& status_path, std::string_view note, const std::string& text) {
  if (status_path.empty()) return;
  if (!is_here(status_path)) {
    const std::string line = format("{}{} {}\n", note_mark, note, text);
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
    return;
  }
  const std::string path = note_path(status_path, note), temporary = path + ".new";
  std::ofstream file(temporary);
  file << text;
  file.close();
  if (file.fail()) {  // the disk may be full: the note before stays
    unlink(temporary.c_str());
  } else {
    rename(temporary.c_str(), path.c_str());
  }
}

// Returns the first line of a status file, such as "5" or "5 1 n2 120 silent": the exit code, then the failed rank, its
// host and its step ("-" if unknown), and "silent" if the rank did not answer, otherwise "told".
std::string first_line(const RankStatus& status) {
  const auto& [rank, host, step, is_silent] = status.failed;
  const std::string code = std::to_string(status.exit_code);
  if (!rank) return code;
  return format("{} {} {} {} {}", code, *rank, host.empty() ? "-" : host, step ? std::to_string(*step) : "-",
                is_silent ? "silent" : "told");
}

RankStatus read_first_line(const std::string& line) {
  std::istringstream words(line);
  RankStatus status;
  FailedRank& failed = status.failed;
  int rank = 0;
  std::string step, how;
  words >> status.exit_code;
  if (!(words >> rank >> failed.host >> step >> how)) {
    failed = {};
    return status;
  }
  failed.rank = rank;
  if (failed.host == "-") failed.host.clear();
  if (step != "-") failed.step = std::atoll(step.c_str());
  failed.is_silent = how == "silent";
  return status;
}

// Whether the status is an error that may be the effect of an error of another rank.
bool is_effect(const std::optional<RankStatus>& status) {
  return status && status->exit_code == exit_code(ErrorKind::peer);
}

// Whether the status is an error that is no effect of another rank's error.
bool is_cause(const RankStatus& status) {
  const auto kinds = {ErrorKind::config, ErrorKind::data, ErrorKind::diverged, ErrorKind::resource};
  return std::any_of(kinds.begin(), kinds.end(), [&](ErrorKind kind) { return status.exit_code == exit_code(kind); });
}

// Writes the note of a line "NOTE TEXT", without its mark and line end.
void take_note(const std::string& status_path, std::string_view line) {
  const std::size_t space = std::min(line.find(' '), line.size());
  const std::string_view note = line.substr(0, space);
  const std::string text(line.substr(std::min(space + 1, line.size())));
  if (note == end_note) {
    write_status(status_path, read_first_line(text));
  } else if (note == ready_note || note == stop_time_note || note == step_note) {
    write_note(status_path, note, text);
  }
}

}  // namespace

StatusWritten write_status(const std::string& path, const RankStatus& status) {
  if (path.empty()) return StatusWritten::unreachable;
  if (!is_here(path)) {
    write_note(path, end_note, first_line(status));
    return StatusWritten::unreachable;
  }
  const std::string temporary = path + "." + std::to_string(getpid());
  std::ofstream file(temporary);
  file << first_line(status) << '\n' << diagnostics_json(status.errors) << status.message;
  file.close();
  if (file.fail()) return StatusWritten::unreachable;
  const bool first = link(temporary.c_str(), path.c_str()) == 0;  // fails if the file already exists
  const bool another = !first && errno == EEXIST;
  const bool replaces =
      another && is_cause(status) && is_effect(read_status(path)) && rename(temporary.c_str(), path.c_str()) == 0;
  if (!replaces) unlink(temporary.c_str());
  if (first || replaces) return StatusWritten::yes;
  return another ? StatusWritten::another_was_first : StatusWritten::unreachable;
}

std::optional<RankStatus> read_status(const std::string& path) {
  std::ifstream file(path);
  std::string line, errors;
  if (!std::getline(file, line)) return {};
  RankStatus status = read_first_line(line);
  std::getline(file, errors);
  status.errors = read_diagnostics(errors);
  std::ostringstream message;
  if (file.peek() != std::ifstream::traits_type::eof()) message << file.rdbuf();
  status.message = message.str();
  return status;
}

void mark_ready(const std::string& status_path, const std::vector<int>& processes) {
  std::string text;
  for (const int process : processes) text += std::to_string(process) + ' ';
  write_note(status_path, ready_note, text);
}

bool is_ready(const std::string& status_path) { return access(note_path(status_path, ready_note).c_str(), F_OK) == 0; }

std::vector<int> marked_processes(const std::string& status_path) {
  std::ifstream file(note_path(status_path, ready_note));
  std::vector<int> processes;
  for (int process = 0; file >> process;) processes.push_back(process);
  return processes;
}

void write_stop_time(const std::string& status_path, const StopTime& time) {
  write_note(status_path, stop_time_note, format("{} {:d} {:d}", time.seconds, time.saves, time.fails));
}

StopTime read_stop_time(const std::string& status_path) {
  std::ifstream file(note_path(status_path, stop_time_note));
  StopTime time;
  if (!(file >> time.seconds >> time.saves >> time.fails)) return {};
  return time;
}

void mark_resizing(const std::string& status_path) { write_note(status_path, resizing_note, ""); }

bool is_resizing(const std::string& status_path) {
  return !status_path.empty() && access(note_path(status_path, resizing_note).c_str(), F_OK) == 0;
}

void write_refused_resize(const std::string& status_path, const RefusedResize& refused) {
  if (status_path.empty()) return;
  // A line that the disk had no space for is ended by the next one.
  const std::string line = format("\n{}\n", json_text({{"ranks", refused.ranks}, {"reason", refused.reason}}));
  std::ofstream(note_path(status_path, refused_note), std::ios::app) << line;
}

std::vector<RefusedResize> read_refused_resizes(const std::string& status_path, std::size_t known) {
  if (status_path.empty()) return {};
  std::ifstream file(note_path(status_path, refused_note));
  std::vector<RefusedResize> all;
  for (std::string line; std::getline(file, line) && !file.eof();) {  // the last line may not be whole yet
    const Json json = try_parse_json(line);
    if (!json.is_object()) continue;
    const auto ranks = json.find("ranks"), reason = json.find("reason");
    if (ranks == json.end() || reason == json.end() || !ranks->is_number_integer() || !reason->is_string()) continue;
    all.push_back({ranks->get<int>(), reason->get<std::string>()});
  }
  all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(known, all.size())));
  return all;
}

void write_step(const std::string& status_path, std::int64_t step) {
  write_note(status_path, step_note, std::to_string(step));
}

std::optional<std::int64_t> read_step(const std::string& status_path) {
  std::ifstream file(note_path(status_path, step_note));
  std::int64_t step = 0;
  return file >> step ? std::optional(step) : std::nullopt;
}

void write_log_path(const std::string& status_path, const std::string& log_path) {
  if (is_here(status_path)) write_note(status_path, log_note, log_path);
}

std::string read_log_path(const std::string& status_path) {
  std::string path;
  std::getline(std::ifstream(note_path(status_path, log_note)), path);
  return path;
}

void take_notes(const std::string& status_path, std::string& text) {
  for (std::size_t at = text.find(note_mark); at != std::string::npos; at = text.find(note_mark, at)) {
    const std::size_t begin = at + note_mark.size(), end = text.find('\n', begin);
    if (end == std::string::npos) return;  // wait for the rest of the line
    take_note(status_path, std::string_view(text).substr(begin, end - begin));
    text.erase(at, end + 1 - at);
  }
}

}  // namespace trainctl
