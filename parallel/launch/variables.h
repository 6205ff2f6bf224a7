// Environment variables as a value, so that everything decided from them is a pure function.
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

  // The environment of this process.
  static Variables of_process();

  bool has(std::string_view name) const { return values_.find(name) != values_.end(); }
  // The value, or "".
  std::string text(std::string_view name) const;
  // The value where it is a whole number that is not negative.
  std::optional<int> number(std::string_view name) const;

  const Map& all() const { return values_; }

 private:
  Map values_;
};

// Variables that the supervisor sets for its ranks.
inline constexpr std::string_view status_file_variable = "TRAINCTL_STATUS_FILE";   // path, see status.h
inline constexpr std::string_view columns_variable = "TRAINCTL_TERMINAL_COLUMNS";  // set where the user has one
inline constexpr std::string_view terminal_variable = "TRAINCTL_TERMINAL";         // and rank 0 reaches it: its path
inline constexpr std::string_view output_variable =
    "TRAINCTL_OUTPUT_TERMINAL";                                              // 1 where standard output is one, else 0
inline constexpr std::string_view config_variable = "TRAINCTL_CONFIG_TEXT";  // see config_text.h
inline constexpr std::string_view bound_variable = "OMPI_MCA_orte_bound_at_launch";  // ranks are bound to cores

// Where mpirun, its daemons and ranks may listen (preload/listen.cpp), and how the C library is told to load that.
inline constexpr std::string_view listen_variable = "TRAINCTL_LISTEN_ON";
inline constexpr std::string_view preload_variable = "LD_PRELOAD";

}  // namespace trainctl
