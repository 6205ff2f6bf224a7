// Standard output of a command that shows changing values. On a terminal there are permanent lines, and below them live
// lines, which newer ones replace; elsewhere there are only permanent lines, without control characters.
#pragma once

#include <string>
#include <vector>

namespace trainctl {

class Screen {
 public:
  explicit Screen(bool quiet);  // quiet: no output
  ~Screen();                    // erases the live lines
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // Whether live lines can be shown.
  bool is_live() const { return live_; }
  // The maximal number of columns of a live line; the terminal's last column would wrap.
  int width() const;
  // False once the reader of the output has closed it.
  bool is_read() const { return read_; }

  // Prints a permanent line, with control characters escaped by terminal_word(). Throws Error{resource} if it cannot be
  // written.
  void print(const std::string& line);
  // Replaces the live lines by these, which are cut to the width. Does nothing if live lines cannot be shown.
  void show(std::vector<std::string> lines);

 private:
  std::string erased() const;
  void write(const std::string& text);

  bool quiet_ = false;
  bool live_ = false;
  bool read_ = true;
  std::vector<std::string> shown_;
};

}  // namespace trainctl
