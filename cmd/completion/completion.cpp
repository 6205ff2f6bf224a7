// trainctl completion: scripts by which shells complete the command line, and the manual page.
#include <CLI/CLI.hpp>
#include <memory>

#include "cmd/completion/scripts.h"
#include "cmd/one_of.h"
#include "cmd/subcommands.h"
#include "core/base/version.h"
#include "parallel/launch/ranks/report.h"

namespace trainctl {
namespace {

std::string script_for(const std::string& shell, const std::vector<CommandWords>& commands) {
  if (shell == "bash") return bash_script(commands);
  if (shell == "zsh") return zsh_script(commands);
  if (shell == "fish") return fish_script(commands);
  return manual_page(commands, std::string(version()));
}

}  // namespace

Subcommand completion_subcommand() {
  return {"completion", "Prints a shell's completion script, or the manual page",
          "trainctl completion fish > ~/.config/fish/completions/trainctl.fish\n"
          "  source <(trainctl completion bash)",
          [](CLI::App& app) -> std::function<int()> {
            auto shell = std::make_shared<std::string>();
            app.add_option("SHELL", *shell, "bash, zsh or fish; man: the manual page trainctl.1")
                ->required()
                ->check(one_of({"bash", "zsh", "fish", "man"}));
            return [shell, &app] {
              answer(script_for(*shell, words_of(*app.get_parent())));
              return 0;
            };
          }};
}

}  // namespace trainctl
