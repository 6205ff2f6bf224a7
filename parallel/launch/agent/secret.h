// The secret that a chief and its launch agents share, and the files that store it privately.
#pragma once

#include <optional>
#include <string>

#include "parallel/launch/tf_config/tf_config.h"
#include "parallel/launch/variables.h"

namespace trainctl {

// The required protection of the folder of a private file.
enum class PrivateFolder {
  kept,     // only its owner, who must be this user, may enter it
  guarded,  // it belongs to this user or root, and no other user may add or replace files in it
};

// Reads a private file. Throws Error{config} if the file is a link or not a regular file, if it does not belong to this
// user, if others may read it, or if its folder is not protected as required.
std::string read_private_file(const std::string& path, PrivateFolder folder);

// Writes a file that only this user can read, and creates its folder. If several processes write it at the same time,
// the file of the first one is kept. Throws Error{config} if the folder is not `kept`, and Error{resource} if the file
// cannot be written.
void write_private_file(const std::string& path, const std::string& text);

// The environment variables for the secret and for the file that holds it.
inline constexpr std::string_view secret_variable = "TRAINCTL_SECRET";
inline constexpr std::string_view secret_file_variable = "TRAINCTL_SECRET_FILE";

// Returns the secret in TRAINCTL_SECRET, or in the file that TRAINCTL_SECRET_FILE names; empty if neither variable is
// set. Throws Error{config} if the secret is too short or too simple, or if the file is not private
// (read_private_file).
std::optional<std::string> given_secret(const Variables& variables);

// Returns given_secret(). If it is empty and all tasks are on loopback (`localhost` or an address 127.*, no other
// name), returns a secret in the user's cache, which all processes of this user share. If given_secret() is empty and
// there are other hosts, or the user has no cache folder, throws Error{config} with the remedy.
std::string secret_for(const TfConfig& config, const Variables& variables);

// Removes TRAINCTL_SECRET from the environment of this process, and therefore of the commands that it starts. Must be
// called after the secret is read, while no other thread runs.
void forget_secret();

}  // namespace trainctl
