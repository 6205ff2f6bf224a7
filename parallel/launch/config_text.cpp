// Passes the texts of a config through the environment, in pieces, since Linux limits a variable to 128 KiB.
#include "parallel/launch/config_text.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/format.h"
#include "parallel/launch/situation.h"

namespace trainctl {
namespace {

constexpr std::size_t piece_bytes = 100'000;
constexpr std::size_t max_pieces = 10;  // Linux limits all variables and arguments together to 2 MB

std::string variable_of(std::size_t number) {
  return number == 0 ? std::string(config_variable) : format("{}_{}", config_variable, number);
}

// Returns whether the path names a different file in each process, as /dev/stdin and /dev/fd/N do.
bool is_own(const std::string& config) {
  std::error_code failure;
  if (config.starts_with("/dev/") || config.starts_with("/proc/")) return true;
  return std::filesystem::exists(config, failure) && !std::filesystem::is_regular_file(config, failure);
}

}  // namespace

std::optional<std::string> take_passed_config(const std::string& config) {
  const Variables variables = Variables::of_process();
  std::string passed;
  for (std::size_t number = 0; variables.has(variable_of(number)); ++number) {
    passed += variables.text(variable_of(number));
    unsetenv(variable_of(number).c_str());
  }
  if (passed.starts_with(config + "\n")) return passed.substr(config.size() + 1);
  const Situation situation = find_situation(variables);
  if (situation.is_rank() && situation.ranks > 1 && is_own(config)) {
    throw Error(ErrorKind::config, SourceLocation{config, 0, 0},
                "ranks cannot share a config that is not a regular file",
                "write it to a file, or let trainctl start the ranks (trainctl run CONFIG --ranks N)");
  }
  return {};
}

void pass_config(const std::string& config, const std::string& files) {
  const std::string text = config + "\n" + files;
  if (text.size() <= piece_bytes * max_pieces) {
    for (std::size_t number = 0; number * piece_bytes < text.size(); ++number) {
      setenv(variable_of(number).c_str(), text.substr(number * piece_bytes, piece_bytes).c_str(), 1);
    }
    return;
  }
  if (!is_own(config)) return;
  throw Error(ErrorKind::config, SourceLocation{config, 0, 0},
              format("the config has {}; a config that is not a regular file may have at most {}",
                     byte_text(std::ssize(files)), byte_text(piece_bytes * max_pieces)),
              "write it to a file");
}

}  // namespace trainctl
