// Environment variables as a value, so that all decisions based on them are pure functions.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace trainctl {

class Variables {
 public:
  using Map = std::map<std::string, std::string, std::less<>>;

  Variables() = default;
  explicit Variables(Map values) : values_(std::move(values)) {}
  Variables(std::initializer_list<Map::value_type> values) : values_(values) {}

  // Returns the environment of this process.
  static Variables of_process();

  bool has(std::string_view name) const { return values_.find(name) != values_.end(); }
  // Returns the value, or "" if the variable is not set.
  std::string text(std::string_view name) const;
  // Returns the value if it is a non-negative whole number, otherwise an empty value.
  std::optional<int> number(std::string_view name) const;

  const Map& all() const { return values_; }

 private:
  Map values_;
};

// Variables that the supervisor sets for its ranks:

// Path of the status file, see status.h.
inline constexpr std::string_view status_file_variable = "TRAINCTL_STATUS_FILE";
// Width of the user's terminal, if there is one.
inline constexpr std::string_view columns_variable = "TRAINCTL_TERMINAL_COLUMNS";
// Path of the terminal, if rank 0 can open it.
inline constexpr std::string_view terminal_variable = "TRAINCTL_TERMINAL";
// "1" if standard output is a terminal, otherwise "0".
inline constexpr std::string_view output_variable = "TRAINCTL_OUTPUT_TERMINAL";
// The texts of the config, see config_text.h.
inline constexpr std::string_view config_variable = "TRAINCTL_CONFIG_TEXT";
// Why the ranks were started again, see restart.h; empty in the first attempt.
inline constexpr std::string_view restart_variable = "TRAINCTL_RESTART";
// The name of the supervisor, see Situation::launch.
inline constexpr std::string_view launch_variable = "TRAINCTL_LAUNCH";
// Tells MPI that ranks are bound to cores.
inline constexpr std::string_view bound_variable = "OMPI_MCA_orte_bound_at_launch";

// The networks on which mpirun, its daemons and the ranks may listen (read by the library of preload/listen.cpp), and
// the variable that makes the dynamic linker load this library.
inline constexpr std::string_view listen_variable = "TRAINCTL_LISTEN_ON";
inline constexpr std::string_view preload_variable = "LD_PRELOAD";

}  // namespace trainctl
