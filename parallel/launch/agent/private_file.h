// Files that nobody but this user can have written or can read: the secrets of launch agents.
#pragma once

#include <string>

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

}  // namespace trainctl
