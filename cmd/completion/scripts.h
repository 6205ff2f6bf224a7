// Completion scripts of shells and the manual page, of the words of the command line.
#pragma once

#include "cmd/completion/words.h"

namespace trainctl {

// To be sourced, or placed where the shell looks for it: share/bash-completion/completions/trainctl.
std::string bash_script(const std::vector<CommandWords>& commands);
// As a file _trainctl in a folder of $fpath.
std::string zsh_script(const std::vector<CommandWords>& commands);
// As trainctl.fish in fish's folder `completions`.
std::string fish_script(const std::vector<CommandWords>& commands);
// trainctl.1, for man.
std::string manual_page(const std::vector<CommandWords>& commands, const std::string& version);

}  // namespace trainctl
