// Log lines for people: one logger a process, on standard error and, once a run directory exists, in files.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace trainctl::log {

enum class Level { debug, info, warning, error, off };

// Sets what reaches the terminal. Other ranks than 0 of a run usually log warnings and errors only.
void set_level(Level level);

// A prefix such as "rank 3" in front of every line, in files that are added later too; empty for none.
void set_prefix(std::string_view prefix);

// Adds a file that receives every line of the level and above, whole lines at its end: several processes may write to
// one. Throws Error{resource} when it cannot be opened; where it can be written no longer the terminal says so, once.
void add_file(const std::string& path, Level level = Level::info);

void debug(std::string_view line);
void info(std::string_view line);
void warning(std::string_view line);
void error(std::string_view line);

// Called around every line on the terminal, so that a progress bar can clear itself and draw again; empty for none.
// They must not log. After the call returns, hooks set before are not running and run no more.
void set_terminal_hooks(std::function<void()> before, std::function<void()> after);

}  // namespace trainctl::log
