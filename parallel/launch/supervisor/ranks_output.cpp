// Reads the pipes of mpirun and its ranks, and forwards their contents.
#include "parallel/launch/supervisor/ranks_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/base/output.h"
#include "parallel/launch/host/process.h"
#include "parallel/launch/mpirun/mpirun.h"
#include "parallel/launch/ranks/status.h"

namespace trainctl {
namespace {

// Passes all available data to `take`. Returns false once the other side has closed the pipe.
template <class Take>
bool read_all(int descriptor, const Take& take) {
  std::array<char, 65536> buffer{};
  ssize_t count = 0;
  while ((count = ::read(descriptor, buffer.data(), buffer.size())) > 0) {
    take(std::string_view(buffer.data(), static_cast<std::size_t>(count)));
  }
  return count != 0;
}

}  // namespace

RanksOutput::RanksOutput(const ChildProcess& child, Mpirun& mpirun, std::string status_file, bool holds_output,
                         bool holds_errors)
    : child_(child),
      mpirun_(mpirun),
      status_file_(std::move(status_file)),
      holds_output_(holds_output),
      holds_errors_(holds_errors) {
  for (int pipe : {child_.output, child_.errors, child_.messages}) fcntl(pipe, F_SETFL, O_NONBLOCK);
}

std::array<pollfd, 4> RanksOutput::sources() const {
  return {{{output_closed_ ? -1 : child_.output, POLLIN, 0},
           {errors_closed_ ? -1 : child_.errors, POLLIN, 0},
           {messages_closed_ ? -1 : child_.messages, POLLIN, 0},
           {backlog_.empty() || !shown_ ? -1 : STDERR_FILENO, POLLOUT, 0}}};
}

void RanksOutput::read() {
  forward_output();
  forward_errors();
  collect_messages();
}

// Moves mpirun's own messages out of the text and returns the ranks' output.
std::string RanksOutput::without_own_messages(std::string_view text) {
  constexpr std::size_t tail = 8192;
  std::string rest(text);
  take_notes(status_file_, rest);
  append_within(messages_, mpirun_.take_own_messages(rest), max_remote_text);
  last_output_.append(rest);
  if (last_output_.size() > tail) last_output_.erase(0, last_output_.size() - tail);
  return rest;
}

void RanksOutput::forward_output() {
  const bool open = read_all(child_.output, [this](std::string_view all) {
    const std::string text = without_own_messages(all);
    if (holds_output_) {
      output_.append(text);
    } else if (output_error_ == 0) {
      output_error_ = write_all(STDOUT_FILENO, text);
    }
  });
  if (!open) output_closed_ = true;
}

void RanksOutput::forward_errors() {
  constexpr std::size_t max_bytes = 1 << 20;  // limit, so that training does not wait for a blocked terminal
  const bool open = read_all(child_.errors, [this](std::string_view text) {
    const std::string rest = without_own_messages(text);  // mpirun writes whole lines
    if (backlog_.size() <= max_bytes) backlog_.append(rest);
  });
  if (!open) errors_closed_ = true;
  write_backlog();
}

// Writes the bytes that standard error accepts without blocking. Drops the rest if the reader has closed standard
// error.
void RanksOutput::write_backlog() {
  if (!shown_ && still_holds_errors()) return;
  shown_ = true;
  constexpr std::size_t chunk = 4096;  // a writable pipe accepts this number of bytes
  while (!backlog_.empty()) {
    pollfd ready{STDERR_FILENO, POLLOUT, 0};
    if (poll(&ready, 1, 0) <= 0 || (ready.revents & (POLLOUT | POLLERR | POLLNVAL | POLLHUP)) == 0) return;
    const ssize_t written = write(STDERR_FILENO, backlog_.data(), std::min(chunk, backlog_.size()));
    backlog_.erase(0, written > 0 ? static_cast<std::size_t>(written) : backlog_.size());
  }
}

// Returns whether standard error is still held: only while the ranks start, up to a limit on time and size.
bool RanksOutput::still_holds_errors() const {
  constexpr std::chrono::seconds limit(10);
  constexpr std::size_t max_bytes = 1 << 18;
  return holds_errors_ && backlog_.size() < max_bytes && std::chrono::steady_clock::now() - start_ < limit &&
         !is_ready(status_file_);
}

void RanksOutput::show_held_errors() {
  shown_ = true;
  write_backlog();
}

void RanksOutput::collect_messages() {
  constexpr std::size_t max_bytes = 1 << 18;
  const bool open =
      read_all(child_.messages, [this](std::string_view text) { append_within(messages_, text, max_bytes); });
  if (!open) messages_closed_ = true;
}

}  // namespace trainctl
