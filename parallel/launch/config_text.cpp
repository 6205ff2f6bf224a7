// Passing a config's text through the environment.
#include "parallel/launch/config_text.h"

#include <cstdlib>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/format.h"
#include "parallel/launch/situation.h"

namespace trainctl {

std::optional<std::string> find_config_text(const std::string& config,
                                            const std::function<std::string(const std::string&)>& read) {
  // /dev/stdin and /dev/fd/N are other files to other processes.
  std::error_code failure;
  const bool own = config.starts_with("/dev/") || config.starts_with("/proc/");
  if (!own && (std::filesystem::is_regular_file(config, failure) || !std::filesystem::exists(config, failure)))
    return {};
  const Variables variables = Variables::of_process();
  const std::string passed = variables.text(config_variable);
  if (passed.starts_with(config + "\n")) return passed.substr(config.size() + 1);
  const Situation situation = find_situation(variables);
  if (situation.is_rank() && situation.ranks > 1) {
    throw Error(ErrorKind::config, Place{config, 0, 0}, "ranks cannot share a config that is no regular file",
                "write it to a file, or leave it to trainctl to start the ranks (trainctl run CONFIG --ranks N)");
  }
  return read(config);
}

void pass_config_text(const std::string& config, const std::string& text) {
  constexpr std::size_t most = 100'000;  // Linux takes 128 KiB for a variable
  if (text.size() > most) {
    throw Error(ErrorKind::config, Place{config, 0, 0},
                format("the config has {}; one that is no regular file may have {}", byte_text(std::ssize(text)),
                       byte_text(most)),
                "write it to a file");
  }
  setenv(std::string(config_variable).c_str(), (config + "\n" + text).c_str(), 1);
}

}  // namespace trainctl
