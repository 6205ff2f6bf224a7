// The secret that a chief and its launch agents share, and the files that keep it from others.
#pragma once

#include <optional>
#include <string>

#include "parallel/launch/tf_config/tf_config.h"
#include "parallel/launch/variables.h"

namespace trainctl {

// Who may do what with the folder of a private file.
enum class PrivateFolder {
  kept,     // only its owner, who is this user, may enter it
  guarded,  // this user's or root's, and nobody else may put or replace files there
};

// The text of a file. Throws Error{config} if the file is a link or no regular file, if it is not this user's or others
// may read it, or if its folder is not as stated.
std::string read_private_file(const std::string& path, PrivateFolder folder);

// Writes a file that only this user can read, and makes its folder. The first of several processes that do so at the
// same time wins. Throws Error{config} if the folder is not `kept`, and Error{resource} if the file cannot be written.
void write_private_file(const std::string& path, const std::string& text);

inline constexpr std::string_view secret_variable = "TRAINCTL_SECRET";
inline constexpr std::string_view secret_file_variable = "TRAINCTL_SECRET_FILE";

// The secret that TRAINCTL_SECRET states, or the file that TRAINCTL_SECRET_FILE names. Nothing if neither is set.
// Throws Error{config} if it is too short or too simple to be one, or if the file is not private (read_private_file).
std::optional<std::string> stated_secret(const Variables& variables);

// The same; if none is stated and all tasks are on loopback (`localhost` or an address 127.*, no other name), a secret
// that this user's processes share, in the user's cache. Throws Error{config} with the remedy if none is stated and
// there are other hosts, or no folder is the user's.
std::string secret_for(const TfConfig& config, const Variables& variables);

// Takes TRAINCTL_SECRET out of the environment of this process, for the commands that it starts. Call it once the
// secret is read, while no other thread runs.
void forget_secret();

}  // namespace trainctl
