// The output of mpirun and its ranks, which is forwarded as fast as it can be written, or held.
#pragma once

#include <poll.h>

#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/launch/host/process.h"

namespace trainctl {

class Mpirun;

// Removes an incomplete last line from the text if it begins with one of `beginnings`, or may do so once more of it has
// been read. Returns the line; "" if there is none.
std::string take_incomplete_line(std::string& text, const std::vector<std::string_view>& beginnings);

class RanksOutput {
 public:
  // `unwritten`: standard output of the ranks that its reader has not taken yet; it may have some of earlier ranks.
  // `holds_output`: whether standard output is collected for the caller instead of being forwarded. `holds_errors`:
  // whether standard error is held while the ranks start. `child`, `mpirun` and `unwritten` must outlive the object.
  RanksOutput(const ChildProcess& child, Mpirun& mpirun, std::string status_file, std::string& unwritten,
              bool holds_output, bool holds_errors);

  // Returns the descriptors to wait for.
  std::array<pollfd, 5> sources() const;
  // Reads the available output and writes what can be written without waiting. If very much is unwritten, leaves
  // standard output unread.
  void read();
  // Reads what the ranks have left at their end.
  void read_rest();

  const std::string& output() const { return output_; }      // the held output
  int output_error() const { return output_error_; }         // errno of writing standard output, or 0
  const std::string& messages() const { return messages_; }  // mpirun's own messages
  // Returns the standard error of the ranks (usually of MPI and the loader) from before they were ready. It is held,
  // since it explains why ranks do not become ready. Empty once it has been shown.
  std::string_view held_errors() const { return shown_ ? std::string_view() : backlog_; }
  void show_held_errors();
  const std::string& last_output() const { return last_output_; }  // the end of the ranks' output

 private:
  // The output or the errors of the ranks.
  struct Stream {
    bool closed = false;
    std::string incomplete;  // the beginning of a line of mpirun, the rest of which has not been read yet
  };

  bool has_room() const;
  bool still_holds_errors() const;
  std::string without_own_messages(std::string_view text, Stream& stream);
  void forward_output();
  void write_output();
  void forward_errors();
  void write_backlog();
  void collect_messages();

  const ChildProcess& child_;
  Mpirun& mpirun_;
  std::string& unwritten_;
  std::string status_file_;
  bool holds_output_, holds_errors_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  Stream output_stream_, error_stream_;
  bool messages_closed_ = false;
  int output_error_ = 0;
  std::string output_;
  std::string backlog_;  // standard error that is held or not written yet
  std::string last_output_;
  std::string messages_;
  bool shown_ = false;  // false: standard error is held; true: it is forwarded
};

}  // namespace trainctl
