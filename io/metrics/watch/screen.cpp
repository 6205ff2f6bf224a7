// Drawing by ANSI control sequences.
#include "io/metrics/watch/screen.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/output.h"
#include "io/metrics/terminal.h"

namespace trainctl {
namespace {

// What a file holds may not steer the terminal.
std::string plain(std::string line) {
  std::replace_if(
      line.begin(), line.end(), [](const char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  return line;
}

}  // namespace

Screen::Screen(bool quiet) : quiet_(quiet), live_(!quiet && isatty(STDOUT_FILENO) != 0 && terminal_redraws()) {}

Screen::~Screen() {
  try {
    show({});
  } catch (const Error&) {  // the terminal is gone
  }
}

int Screen::width() const {
  const int columns = terminal_columns(STDOUT_FILENO);
  return (columns > 0 ? columns : 80) - 1;
}

// Takes the cursor to the first of the shown lines, and erases from there.
std::string Screen::erased() const {
  if (shown_.empty()) return "";
  const std::string up = shown_.size() > 1 ? format("\x1b[{}A", shown_.size() - 1) : "";
  return "\r" + up + "\x1b[J";
}

void Screen::print(std::string line) {
  if (quiet_) return;
  write(erased() + plain(std::move(line)) + "\n");
  show(std::exchange(shown_, {}));
}

void Screen::show(std::vector<std::string> lines) {
  if (!live_ || (lines.empty() && shown_.empty())) return;
  const auto columns = static_cast<std::size_t>(std::max(width(), 1));
  std::string text = erased();
  for (std::string& line : lines) {
    line = plain(std::move(line)).substr(0, columns);
    text += (&line == &lines.front() ? "" : "\n") + line;
  }
  write(text);
  shown_ = std::move(lines);
}

void Screen::write(const std::string& text) { read_ = write_output(text) && read_; }

}  // namespace trainctl
