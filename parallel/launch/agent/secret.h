// The secret that a chief and its launch agents share.
#pragma once

#include <optional>
#include <string>

#include "parallel/launch/tf_config/tf_config.h"
#include "parallel/launch/variables.h"

namespace trainctl {

inline constexpr std::string_view secret_variable = "TRAINCTL_SECRET";
inline constexpr std::string_view secret_file_variable = "TRAINCTL_SECRET_FILE";

// The secret that TRAINCTL_SECRET states, or the file that TRAINCTL_SECRET_FILE names. Nothing if neither is set.
// Throws Error{config} if it is too short or too simple to be one, or if the file is not private (private_file.h).
std::optional<std::string> stated_secret(const Variables& variables);

// The same; if none is stated and all tasks are on loopback (`localhost` or an address 127.*, no other name), a secret
// that this user's processes share, in the user's cache. Throws Error{config} with the remedy if none is stated and
// there are other hosts, or no folder is the user's.
std::string secret_for(const TfConfig& config, const Variables& variables);

// Takes TRAINCTL_SECRET out of the environment of this process, for the commands that it starts. Call it once the
// secret is read, while no other thread runs.
void forget_secret();

}  // namespace trainctl
