// The folder in this host's shared memory for the copies of a run's state.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace trainctl {

// The file system of a host's shared memory.
inline constexpr const char* shared_memory_folder = "/dev/shm";

// The number of copies for which there must be space: one is kept while the next one is written.
inline constexpr int copies_in_memory = 2;

// Returns the folder for the run in a directory, such as "/dev/shm/trainctl-1000/mnist-0123456789abcdef": the user's
// folder, then the name and a hash of the absolute path of the directory. Creates nothing. `shared_memory` is another
// folder in tests.
std::string memory_folder_of(const std::string& run_directory, const std::string& shared_memory = shared_memory_folder);

// Throws Error{resource} if shared memory has less than `bytes` bytes left, which the copies of a run need together.
void require_shared_memory(const std::string& shared_memory, std::int64_t bytes);

// Whether a folder of copies and the user's folder belong to this user, and the supervisor with the name `launch` has
// started the ranks that wrote them, as the folder's lock file says (core/base/generation.h).
bool are_copies_of(const std::string& folder, const std::string& launch);

// Returns the folders of copies of this user for which are_copies_of() is true.
std::set<std::string> copies_of_launch(const std::string& launch,
                                       const std::string& shared_memory = shared_memory_folder);

// Creates the folder and the user's folder, which other users cannot read. Throws Error{resource} if this is not
// possible, if the user's folder is of another user, or if the file system has less than `bytes` bytes left beside the
// files that the folder has already.
void create_memory_folder(const std::string& folder, std::int64_t bytes);

// Removes the folder, and the user's folder if it is then empty. Errors are ignored.
void remove_memory_folder(const std::string& folder);

}  // namespace trainctl
