// A full disk for rehearsals: for a while, the files of a run cannot be written. Code that writes checkpoints or
// metrics asks here before each write.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

namespace trainctl {

// From now on, for this time, full_disk_error() returns ENOSPC in this process.
void rehearse_full_disk(std::chrono::duration<double> time);

// The same until save_error() has made this number of writes fail.
void rehearse_full_disk(std::int64_t failing_saves);

// Returns the errno with which a write has to fail: ENOSPC while a full disk is rehearsed, otherwise 0. Any thread may
// call it.
int full_disk_error();

// The same for a file of a checkpoint, whose failure counts as a save that has failed.
int save_error();

// Writes the whole text to a file, like write_all(), unless a full disk is rehearsed. Returns 0 or an errno.
int write_to_disk(int descriptor, std::string_view text);

}  // namespace trainctl
