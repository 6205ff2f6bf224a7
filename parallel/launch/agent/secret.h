// The secret that a chief and its launch agents share.
#pragma once

#include <optional>
#include <string>

#include "parallel/launch/tf_config/tf_config.h"
#include "parallel/launch/variables.h"

namespace trainctl {

inline constexpr std::string_view secret_variable = "TRAINCTL_SECRET";
inline constexpr std::string_view secret_file_variable = "TRAINCTL_SECRET_FILE";

// The secret that TRAINCTL_SECRET states, or the file that TRAINCTL_SECRET_FILE names. Nothing where neither is set.
// Throws Error{config} where it is too short to be one, or where others may read the file.
std::optional<std::string> stated_secret(const Variables& variables);

// Likewise; where none is stated and all tasks are on loopback, one that this user's processes share, kept in the
// user's cache. Throws Error{config} with the remedy where none is stated and there are other hosts.
std::string secret_for(const TfConfig& config, const Variables& variables);

}  // namespace trainctl
