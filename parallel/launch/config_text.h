// The files of a config on their way to the processes that work on it: the first process reads them, and its ranks get
// their texts through the environment, whatever lies on their hosts.
#pragma once

#include <optional>
#include <string>

namespace trainctl {

// What the process that started this one has passed with pass_config() for the config of this name; nothing where it
// has passed nothing. The processes that this one starts do not inherit it. Throws Error{config} in a rank of a user's
// own launcher where the config is no regular file: ranks cannot share a pipe.
std::optional<std::string> take_passed_config(const std::string& config);

// Passes `files`, the texts of the config's files, to all processes that this one starts, and to itself where it starts
// again. Where they are too large for that, ranks read the files on their own hosts; throws Error{config} where they
// cannot, because the config is no regular file.
void pass_config(const std::string& config, const std::string& files);

}  // namespace trainctl
