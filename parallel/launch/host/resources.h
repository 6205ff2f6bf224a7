// Checks before the start whether this host has the resources that mpirun and its ranks need.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace trainctl {

// The resources that mpirun and its ranks need.
struct ResourcesNeeded {
  std::int64_t temporary = 0;      // bytes of mpirun's files in the folder for temporary files
  std::int64_t shared_memory = 0;  // bytes of memory that ranks share
  std::int64_t file_size = 0;      // size of the largest of these files
  int open_files = 0;              // number of open files of mpirun, which needs more than other processes
};
ResourcesNeeded resources_needed(int ranks_here);

// The size of the files of a short run without checkpoints (config, log, metrics and report), in bytes.
inline constexpr std::int64_t record_bytes_of_run = 128 << 10;

// The properties of a host's ranks that their start depends on.
struct RanksNeed {
  int ranks = 1;
  int threads = 1;  // number of threads of each rank
  int cores = 1;    // number of cores that the ranks share
};

// Throws Error{resource} if this host allows too few processes for these ranks, has too little memory left, or has so
// few cores that the ranks would not start within `start_timeout` (0: no limit).
void require_ranks_can_start(const RanksNeed& need, std::chrono::milliseconds start_timeout);

// Return the time that the ranks take to start, as a number and as a sentence such as "1000 ranks on 2 cores take about
// 375 s to start".
double start_seconds(const RanksNeed& need);
std::string start_text(const RanksNeed& need);

// Returns how many processes the kernel of this host has killed for lack of memory since its start; 0 if it does not
// count them (Linux before 4.13).
std::int64_t memory_kills();

// Throws Error{resource} if no network interface is up.
void require_loopback();

// Returns the folder at this path, or its nearest existing parent.
std::string nearest_folder(const std::string& path);

// Returns "" if a folder has space for `bytes` more bytes, otherwise the problem, such as "/tmp has 64.0 kB left, but
// 9.0 MB are needed".
std::string disk_space_problem(const std::string& folder, std::int64_t bytes);

// Throws Error{resource}, which names the folder, if a file in it may not grow to this size.
void require_file_size(const std::string& folder, std::int64_t bytes);

// Throws Error{resource} if the working directory was deleted or cannot be read.
void require_working_directory();

// Raises the limit on open files of this process and its children to `needed`. Throws Error{resource} if the system
// does not permit it.
void permit_open_files(int needed);

}  // namespace trainctl
