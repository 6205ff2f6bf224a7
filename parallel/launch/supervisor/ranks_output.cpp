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

// Passes the available data to `take`, at most the capacity of a pipe. Returns false once the other side has closed the
// pipe.
template <class Take>
bool read_available(int descriptor, const Take& take) {
  constexpr int most_pieces = 16;
  std::array<char, 65536> buffer{};
  ssize_t count = -1;
  for (int piece = 0; piece < most_pieces; ++piece) {
    count = ::read(descriptor, buffer.data(), buffer.size());
    if (count <= 0) break;
    take(std::string_view(buffer.data(), static_cast<std::size_t>(count)));
  }
  return count != 0;
}

}  // namespace

std::string take_incomplete_line(std::string& text, const std::vector<std::string_view>& beginnings) {
  const std::size_t begin = text.rfind('\n') + 1;  // 0 if there is no line before
  const std::string_view line = std::string_view(text).substr(begin);
  const bool taken =
      !line.empty() && std::any_of(beginnings.begin(), beginnings.end(), [&](std::string_view beginning) {
        return line.starts_with(beginning.substr(0, line.size()));
      });
  if (!taken) return "";
  std::string incomplete(line);
  text.resize(begin);
  return incomplete;
}

RanksOutput::RanksOutput(const ChildProcess& child, Mpirun& mpirun, std::string status_file, std::string& unwritten,
                         bool holds_output, bool holds_errors)
    : child_(child),
      mpirun_(mpirun),
      unwritten_(unwritten),
      status_file_(std::move(status_file)),
      holds_output_(holds_output),
      holds_errors_(holds_errors) {
  for (int pipe : {child_.output, child_.errors, child_.messages}) fcntl(pipe, F_SETFL, O_NONBLOCK);
}

std::array<pollfd, 5> RanksOutput::sources() const {
  return {{{output_stream_.closed || !has_room() ? -1 : child_.output, POLLIN, 0},
           {unwritten_.empty() ? -1 : STDOUT_FILENO, POLLOUT, 0},
           {error_stream_.closed ? -1 : child_.errors, POLLIN, 0},
           {messages_closed_ ? -1 : child_.messages, POLLIN, 0},
           {backlog_.empty() || !shown_ ? -1 : STDERR_FILENO, POLLOUT, 0}}};
}

void RanksOutput::read() {
  if (has_room()) forward_output();
  write_output();
  forward_errors();
  collect_messages();
}

void RanksOutput::read_rest() {
  forward_output();
  read();
}

// Output of commands such as generate must not be lost: if its reader is slower than the ranks, they wait.
bool RanksOutput::has_room() const {
  constexpr std::size_t max_bytes = 16 << 20;
  return unwritten_.size() < max_bytes;
}

// Moves mpirun's own messages out of the text and returns the ranks' output.
std::string RanksOutput::without_own_messages(std::string_view text, Stream& stream) {
  constexpr std::size_t tail = 8192;
  std::string rest = std::exchange(stream.incomplete, "") + std::string(text);
  if (!stream.closed) stream.incomplete = take_incomplete_line(rest, mpirun_.line_beginnings());
  take_notes(status_file_, rest);
  append_within(messages_, mpirun_.take_own_messages(rest), max_remote_text);
  last_output_.append(rest);
  if (last_output_.size() > tail) last_output_.erase(0, last_output_.size() - tail);
  return rest;
}

void RanksOutput::forward_output() {
  if (output_stream_.closed) return;
  const auto forward = [this](std::string_view all) {
    const std::string text = without_own_messages(all, output_stream_);
    if (holds_output_) {
      output_.append(text);
    } else if (output_error_ == 0) {
      unwritten_.append(text);
    }
  };
  output_stream_.closed = !read_available(child_.output, forward);
  if (output_stream_.closed) forward("");
}

void RanksOutput::write_output() {
  if (output_error_ == 0) output_error_ = write_ready(STDOUT_FILENO, unwritten_);
  if (output_error_ != 0) unwritten_.clear();
}

void RanksOutput::forward_errors() {
  constexpr std::size_t max_bytes = 1 << 20;  // limit, so that training does not wait for a blocked terminal
  const auto forward = [this](std::string_view text) {
    const std::string rest = without_own_messages(text, error_stream_);
    if (backlog_.size() <= max_bytes) backlog_.append(rest);
  };
  if (!error_stream_.closed) {
    error_stream_.closed = !read_available(child_.errors, forward);
    if (error_stream_.closed) forward("");
  }
  write_backlog();
}

// Writes the bytes that standard error accepts without blocking. Drops the rest if the reader has closed standard
// error.
void RanksOutput::write_backlog() {
  if (!shown_ && still_holds_errors()) return;
  shown_ = true;
  if (write_ready(STDERR_FILENO, backlog_) != 0) backlog_.clear();
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
      read_available(child_.messages, [this](std::string_view text) { append_within(messages_, text, max_bytes); });
  if (!open) messages_closed_ = true;
}

}  // namespace trainctl
