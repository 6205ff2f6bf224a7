// Hosts and their slots, as given by a user, a file or SLURM.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/launch/variables.h"

namespace trainctl {

struct Host {
  std::string name;  // name for ssh: "node1" or "user@node1"
  int slots = 1;     // the maximum number of ranks on the host

  bool operator==(const Host&) const = default;
};

// The maximum number of slots of a host, and of all hosts together.
inline constexpr int max_slots = 1 << 20;

// Returns whether a text is a valid name of a host, or of a user on a host as in "user@node1". Each part has up to 255
// letters, digits, '-', '.' and '_'. It does not start with '-', so that no program parses it as an option.
bool is_host_name(std::string_view text);

// Returns the name of this host.
std::string this_host();

// Returns "node1" for "user@node1" and for "node1".
std::string without_user(const std::string& host);

// Returns the sum of the slots. Throws Error{config} if it exceeds max_slots.
int total_slots(const std::vector<Host>& hosts);

// Parses "node1:8,node2:8", the format of mpirun's -H. A host without a number has one slot for each time that it is
// named. Throws Error{config}.
std::vector<Host> parse_hosts(std::string_view text);

// Parses a hostfile in OpenMPI's format: one line for each host, such as "node1 slots=8"; # begins a comment. Spaces
// around '=' are allowed. A host without slots has one slot for each of its lines. `cpus` and `count` mean slots, the
// maximum number of slots is ignored, and `username=NAME` means "NAME@node1". `file`: name of the hostfile, for
// messages. Throws Error{config}.
std::vector<Host> parse_hostfile(std::string_view text, const std::string& file);

// Reads and parses a hostfile. Throws Error{config}, also if the file cannot be read.
std::vector<Host> read_hostfile(const std::string& path);

// Expands SLURM's short notation for counts per node: "2(x3),1" is 2, 2, 2, 1. Returns an empty optional if the text is
// invalid or the sum exceeds max_slots.
std::optional<std::vector<int>> expand_counts(std::string_view text);

// Expands SLURM's short notation for names: "n[1-2,08],login" is n1, n2, n08, login. Returns an empty list if the
// notation is not supported, if there are more names than max_slots, or if a name or all names together are too long.
std::vector<std::string> expand_names(std::string_view text);

// The nodes of the SLURM job that this process belongs to.
struct SlurmJob {
  std::vector<int> slots;          // number of tasks of each node
  std::vector<std::string> names;  // names of the nodes; empty: unknown, mpirun finds the nodes by itself
  bool is_part = false;            // whether some nodes of the job are left out

  int nodes() const { return static_cast<int>(slots.size()); }
  // Leaves out a node, if the job's names are known and have it.
  void leave_out(const std::string& node);
};

// Returns the SLURM job of this process; empty outside a job. Throws Error{config} if the variables name more nodes
// than a job can have.
std::optional<SlurmJob> find_slurm_job(const Variables& variables);

}  // namespace trainctl
