// Checks disk space, memory, limits, open files and the working directory.
#include "parallel/launch/host/resources.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "core/base/control_groups.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/memory.h"
#include "core/base/table.h"

namespace trainctl {
namespace {

constexpr int other_threads = 4;                        // threads of MPI, of the launcher and of the loader
constexpr std::int64_t memory_of_empty_rank = 8 << 20;  // in bytes, without memory that ranks share

// Returns the number of processes and threads that may still be started; empty if there is no limit.
std::optional<std::int64_t> processes_left() {
  std::optional<std::int64_t> left;
  const auto limit_to = [&left](std::int64_t count) { left = std::min(left.value_or(count), count); };
  for (const ControlGroup& group : control_groups("pids")) {
    const auto most = number_in(group, "pids.max");
    if (most) limit_to(std::max<std::int64_t>(0, *most - number_in(group, "pids.current").value_or(0)));
  }
  rlimit limit{};
  const bool limited = geteuid() != 0 && getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  if (limited) limit_to(static_cast<std::int64_t>(limit.rlim_cur));
  return left;
}

}  // namespace

ResourcesNeeded resources_needed(int ranks_here) {
  // Measured with OpenMPI 4.1 and PMIx 4, with a margin: two files of 4 MiB and a page for each rank; vader's segment
  // of 4 MiB for each rank; 26 open files and 3 more for each rank, and some more during the start.
  ResourcesNeeded needed;
  needed.temporary = (std::int64_t{9} << 20) + std::int64_t{16384} * ranks_here;
  needed.shared_memory = ((std::int64_t{4} << 20) + 4096) * ranks_here;
  needed.file_size = (std::int64_t{4} << 20) + 4096;
  needed.open_files = 40 + 4 * ranks_here;
  return needed;
}

void require_ranks_can_start(const RanksNeed& need, std::chrono::milliseconds start_timeout) {
  const char* remedy = "start fewer ranks on this host (--ranks, --hosts)";
  const std::int64_t processes = std::int64_t{need.ranks} * (need.threads + other_threads) + 16;
  if (const auto left = processes_left(); left && *left < processes) {
    throw Error(
        ErrorKind::resource,
        format("{} ranks need about {} processes and threads, but only {} more may run", need.ranks, processes, *left),
        std::string("raise the limit (ulimit -u, or the container's limit), or ") + remedy);
  }
  const std::int64_t memory = need.ranks * memory_of_empty_rank;
  if (const auto left = available_memory(); left && *left < memory) {
    throw Error(ErrorKind::resource,
                format("{} ranks need {} of memory to start, even without a network to train, but {} are left",
                       need.ranks, byte_text(memory), byte_text(*left)),
                remedy);
  }
  const double seconds = start_seconds(need);
  if (start_timeout.count() == 0 || seconds * 1000 < static_cast<double>(start_timeout.count())) return;
  throw Error(ErrorKind::resource,
              format("{}, but cluster.start_timeout is {:g} s", start_text(need),
                     static_cast<double>(start_timeout.count()) / 1000),
              std::string(remedy) + ", or raise cluster.start_timeout");
}

double start_seconds(const RanksNeed& need) {
  // Measured with OpenMPI 4.1 on two cores for 16 to 64 ranks: each rank exchanges its address with all others.
  const double ranks = need.ranks;
  return (0.05 + 0.0007 * ranks) * ranks / std::max(1, need.cores);
}

std::string start_text(const RanksNeed& need) {
  const std::string cores = counted(need.cores, "core");
  return format("{} on {} take about {:.0f} s to start", counted(need.ranks, "rank"), cores, start_seconds(need));
}

std::int64_t memory_kills() {
  std::ifstream counters("/proc/vmstat");
  std::string name;
  for (std::int64_t count = 0; counters >> name >> count;) {
    if (name == "oom_kill") return count;
  }
  return 0;
}

void require_loopback() {
  ifaddrs* interfaces = nullptr;
  if (getifaddrs(&interfaces) != 0) return;
  bool found = false;
  for (const ifaddrs* each = interfaces; each != nullptr; each = each->ifa_next) {
    found =
        found || ((each->ifa_flags & IFF_UP) != 0 && each->ifa_addr != nullptr && each->ifa_addr->sa_family == AF_INET);
  }
  freeifaddrs(interfaces);
  if (found) return;
  throw Error(ErrorKind::resource,
              "no network interface is up, not even loopback, through which mpirun and its ranks communicate",
              "bring it up (ip link set lo up), or use --ranks 1");
}

std::string nearest_folder(const std::string& path) {
  std::error_code ignored;
  std::filesystem::path folder = std::filesystem::absolute(path, ignored);
  while (!std::filesystem::is_directory(folder, ignored) && folder.has_relative_path()) folder = folder.parent_path();
  return folder;
}

std::string disk_space_problem(const std::string& folder, std::int64_t bytes) {
  struct statvfs status {};
  if (statvfs(folder.c_str(), &status) != 0) return format("{}: {}", folder, std::strerror(errno));
  if ((status.f_flag & ST_RDONLY) != 0) return folder + " is read-only";
  if (status.f_blocks == 0) return "";  // the file system does not count blocks
  const auto left = static_cast<std::int64_t>(status.f_bavail) * static_cast<std::int64_t>(status.f_frsize);
  if (left < bytes) return format("{} has {} left, but {} are needed", folder, byte_text(left), byte_text(bytes));
  constexpr int files = 64;
  if (status.f_files > 0 && status.f_favail < fsfilcnt_t{files}) {
    return format("{} has space for {} more files, but {} are needed", folder, status.f_favail, files);
  }
  return "";
}

void require_file_size(const std::string& folder, std::int64_t bytes) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= static_cast<rlim_t>(bytes)) return;
  throw Error(ErrorKind::resource,
              format("a file may grow to {}, but mpirun's files in {} need {} each",
                     byte_text(static_cast<std::int64_t>(limit.rlim_cur)), folder, byte_text(bytes)),
              "raise the limit (ulimit -f), or use --ranks 1");
}

void require_working_directory() {
  std::error_code error;
  const bool known = !std::filesystem::current_path(error).empty();
  if (known) return;
  const bool deleted = error == std::errc::no_such_file_or_directory;
  throw Error(ErrorKind::resource,
              format("the working directory cannot be used: {}", deleted ? "it was deleted" : error.message()),
              "change to an existing folder (cd), and start again");
}

void permit_open_files(int needed) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= static_cast<rlim_t>(needed)) return;
  limit.rlim_cur = std::min(limit.rlim_max, static_cast<rlim_t>(needed));
  const bool raised = setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= static_cast<rlim_t>(needed);
  if (raised) return;
  throw Error(ErrorKind::resource,
              format("{} files may be open at once, but {} are needed to start the ranks", limit.rlim_cur, needed),
              "raise the limit (ulimit -n), or start fewer ranks");
}

}  // namespace trainctl
