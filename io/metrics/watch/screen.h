// Standard output of a command that shows how things change: on a terminal lines that newer ones replace, below those
// that stay; elsewhere those that stay alone, without a control character.
#pragma once

#include <string>
#include <vector>

namespace trainctl {

class Screen {
 public:
  explicit Screen(bool quiet);  // quiet: shows and prints nothing
  ~Screen();                    // leaves no lines behind that were to be replaced
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // Whether lines can be replaced.
  bool is_live() const { return live_; }
  // Columns that a line may have; the last one would wrap.
  int width() const;
  // False once whoever read the output has closed it.
  bool is_read() const { return read_; }

  // Prints a line that stays, as terminal_word() writes it. Throws Error{resource} if output cannot be written.
  void print(const std::string& line);
  // Shows lines in the place of those that the last call showed; nothing where that cannot be. Each is cut to the
  // width.
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
