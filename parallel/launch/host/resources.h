// Whether this host has what mpirun and its ranks need, found out before they start.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace trainctl {

// Bytes that files of mpirun's may take in a folder for temporary files, and that memory which ranks share takes.
struct ResourcesNeeded {
  std::int64_t temporary = 0;
  std::int64_t shared_memory = 0;
  std::int64_t file_size = 0;  // of the largest of these files
  int open_files = 0;          // of mpirun, which has most
};
ResourcesNeeded resources_needed(int ranks_here);

// Bytes that the records of a short run take in its directory beside the checkpoints: config, log, metrics and report.
inline constexpr std::int64_t records_of_run = 128 << 10;

// What ranks of a host need to start, whatever they train.
struct RanksNeed {
  int ranks = 1;
  int threads = 1;  // that each computes with
  int cores = 1;    // that they share
};

// Throws Error{resource} where this host lets too few processes run for these ranks, or has too little memory left, or
// where very many ranks on few cores would not have started when `start_timeout` is over (0: they may take as long as
// they want).
void require_ranks_can_start(const RanksNeed& need, std::chrono::milliseconds start_timeout);

// How long the ranks take to start, and that as a sentence: "1000 ranks on 2 cores take about 375 s to start".
double start_seconds(const RanksNeed& need);
std::string start_text(const RanksNeed& need);

// Throws Error{resource} where no network interface is up.
void require_loopback();

// The folder at this path, or the nearest above it that exists.
std::string nearest_folder(const std::string& path);

// "" where a folder can take so much more, else why not: "/tmp has 64.0 kB left, and 9.0 MB are needed".
std::string disk_space_problem(const std::string& folder, std::int64_t bytes);

// Throws Error{resource} that names the folder where a file in it may not grow to so many bytes.
void require_file_size(const std::string& folder, std::int64_t bytes);

// Throws Error{resource} where the working directory is gone or cannot be named.
void require_working_directory();

// Lets this process and its children open as many files as are needed and permitted. Throws Error{resource} where that
// is too few.
void permit_open_files(int needed);

}  // namespace trainctl
