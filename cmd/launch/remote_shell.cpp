// trainctl remote-shell: the command that mpirun and the supervisor start instead of ssh if TF_CONFIG names the hosts.
#include <CLI/CLI.hpp>
#include <cstddef>
#include <memory>

#include "cmd/subcommands.h"
#include "core/base/error.h"
#include "parallel/launch/agent/chief.h"
#include "parallel/launch/agent/secret.h"

namespace trainctl {
namespace {

int run_remote_shell(const std::vector<std::string>& words) {
  const Variables variables = Variables::of_process();
  const std::optional<TfConfig> config = find_tf_config(variables);
  if (!config || words.size() < 2)
    throw Error(ErrorKind::config, "remote-shell is called by mpirun, and requires TF_CONFIG");
  std::string command;
  for (std::size_t i = 1; i < words.size(); ++i) command += (i == 1 ? "" : " ") + words[i];
  return remote_shell(*config, secret_for(*config, variables), words.front(), command);
}

}  // namespace

Subcommand remote_shell_subcommand() {
  return {remote_shell_command, "Runs a command through the launch agent of a host",
          "trainctl remote-shell -- HOST COMMAND", [](CLI::App& app) {
            auto words = std::make_shared<std::vector<std::string>>();
            app.group("");  // hidden: no user calls it
            app.add_option("WORDS", *words, "The host and the command")->required();
            return [words] { return run_remote_shell(*words); };
          }};
}

}  // namespace trainctl
