// Passes the files of a config to the processes that need it. The first process reads the files, and its ranks get the
// texts through the environment, independently of the files on their hosts.
#pragma once

#include <optional>
#include <string>

namespace trainctl {

// Returns the texts that the parent process has passed with pass_config() for the config of this name; empty if it has
// passed no texts. Child processes of this process do not inherit the texts. Throws Error{config} in a rank of a user's
// own launcher if the config is not a regular file, since ranks cannot share a pipe.
std::optional<std::string> take_passed_config(const std::string& config);

// Passes `files`, the texts of the config's files, to all child processes, and to this process if it executes itself
// again. If the texts are too large, ranks read the files on their own hosts; throws Error{config} if that is
// impossible because the config is not a regular file.
void pass_config(const std::string& config, const std::string& files);

}  // namespace trainctl
