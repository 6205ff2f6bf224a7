// Hosts and their slots, as a user, a file or SLURM states them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/launch/variables.h"

namespace trainctl {

struct Host {
  std::string name;  // as ssh takes it: "node1" or "user@node1"
  int slots = 1;     // how many ranks it takes

  bool operator==(const Host&) const = default;
};

// The most slots of a host, and of all together.
inline constexpr int most_slots = 1 << 20;

// Whether a text can name a host, or a user on a host as in "user@node1": up to 255 letters, digits, '-', '.' and '_'
// each, and no '-' in front, where programs have options.
bool is_host_name(std::string_view text);

// The name of this host.
std::string this_host();

// "node1" of "user@node1" and of "node1".
std::string without_user(const std::string& host);

// Throws Error{config} where there are more than most_slots.
int total_slots(const std::vector<Host>& hosts);

// "node1:8,node2:8", as mpirun's -H has it: a host without a number has one slot for each time that it is named.
// Throws Error{config}.
std::vector<Host> parse_hosts(std::string_view text);

// OpenMPI's hostfile: a line for each host, "node1 slots=8", also with spaces around '='; # begins a comment; a host
// without slots has one for each line. `cpus` and `count` mean slots, the most slots that a host may have are ignored,
// and `username=NAME` means "NAME@node1". `file` is for messages. Throws Error{config}.
std::vector<Host> parse_hostfile(std::string_view text, const std::string& file);

// Reads and parses a hostfile. Throws Error{config} also where it cannot be read.
std::vector<Host> read_hostfile(const std::string& path);

// SLURM's short form of counts per node, "2(x3),1" being 2, 2, 2, 1; nothing if it is none, or the sum is above
// most_slots.
std::optional<std::vector<int>> expand_counts(std::string_view text);

// SLURM's short form of names, "n[1-2,08],login" being n1, n2, n08, login; nothing if it is none that is known here, if
// it has more names than most_slots, or if one is longer than a host's name can be.
std::vector<std::string> expand_names(std::string_view text);

// The nodes of the SLURM job that this process belongs to.
struct SlurmJob {
  std::vector<int> slots;          // tasks for each node
  std::vector<std::string> names;  // as far as they are known: mpirun finds the nodes by itself

  int nodes() const { return static_cast<int>(slots.size()); }
};

// The SLURM job of this process; nothing outside a job. Throws Error{config} if the variables name more nodes than a
// job can have.
std::optional<SlurmJob> find_slurm_job(const Variables& variables);

}  // namespace trainctl
