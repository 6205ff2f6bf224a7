// Draws with ANSI control sequences.
#include "io/metrics/watch/screen.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/output.h"
#include "core/base/terminal_text.h"
#include "core/base/utf8.h"
#include "io/metrics/terminal.h"

namespace trainctl {
namespace {

// Returns at most `columns` characters of a line without control characters, since contents of files must not control
// the terminal.
std::string plain(const std::string& line, std::size_t columns = std::string::npos) {
  const std::string safe = terminal_word(line);
  std::size_t end = 0;
  for (std::size_t shown = 0; shown < columns && end < safe.size(); ++shown) {
    end += utf8_length(std::string_view(safe).substr(end));
  }
  return safe.substr(0, end);
}

}  // namespace

Screen::Screen(bool quiet) : quiet_(quiet), live_(!quiet && isatty(STDOUT_FILENO) != 0 && terminal_redraws()) {}

Screen::~Screen() {
  try {
    show({});
  } catch (const Error&) {  // the terminal was closed
  }
}

int Screen::width() const {
  const int columns = terminal_columns(STDOUT_FILENO);
  return (columns > 0 ? columns : 80) - 1;
}

// Returns the control sequence that moves the cursor to the first live line and erases from there on.
std::string Screen::erased() const {
  if (shown_.empty()) return "";
  const std::string up = shown_.size() > 1 ? format("\x1b[{}A", shown_.size() - 1) : "";
  return "\r" + up + "\x1b[J";
}

void Screen::print(const std::string& line) {
  if (quiet_) return;
  write(erased() + plain(line) + "\n");
  show(std::exchange(shown_, {}));
}

void Screen::show(std::vector<std::string> lines) {
  if (!live_ || (lines.empty() && shown_.empty())) return;
  const auto columns = static_cast<std::size_t>(std::max(width(), 1));
  std::string text = erased();
  for (std::string& line : lines) {
    line = plain(line, columns);
    text += (&line == &lines.front() ? "" : "\n") + line;
  }
  write(text);
  shown_ = std::move(lines);
}

void Screen::write(const std::string& text) { read_ = write_output_bytes(text) && read_; }

}  // namespace trainctl
