// Logging for users: each process has one logger, which writes to standard error and, once a run directory exists, to
// files.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace trainctl::log {

// The levels of lines, ascending; `off` is above all lines.
enum class Level { debug, info, warning, error, off };

// Sets the lowest level of the lines that reach the terminal. Ranks other than 0 of a run usually log warnings and
// errors only.
void set_level(Level level);

// Sets a prefix such as "rank 3" for all later lines on the terminal and in files that are added later; "" means no
// prefix.
void set_prefix(std::string_view prefix);

// Adds a file that receives all lines of `level` and above. Each line is appended as a whole, so that several processes
// may write to one file. Throws Error{resource} if the file cannot be opened. If later writes fail, one warning appears
// on the terminal, and the next line that can be written follows a note with the number of missing lines.
void add_file(const std::string& path, Level level = Level::info);

// Log a line at this level.
void debug(std::string_view line);
void info(std::string_view line);
void warning(std::string_view line);
void error(std::string_view line);

// Sets functions that are called before and after every line on the terminal, so that a progress bar can clear itself
// and draw itself again; empty functions mean no hooks. The hooks must not log. Once this call returns, earlier hooks
// are not running and are not called again.
void set_terminal_hooks(std::function<void()> before, std::function<void()> after);

}  // namespace trainctl::log
