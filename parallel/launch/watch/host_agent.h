// The watch agent of a host: a process that reads the flight records of the ranks on its host and tells the supervisor
// what they do. The supervisor starts it on its own host as a child, and on other hosts through a remote shell.
// Its standard input and output are the channel (messages.h), so that it needs no port and no secret.
#pragma once

#include <chrono>
#include <string>

namespace trainctl {

// The hidden subcommand that the supervisor starts.
inline constexpr const char* host_agent_command = "host-agent";

struct HostAgentOptions {
  std::string folder;                 // the folder of the flight records (flight_variable)
  std::string mark;                   // begins each line of the agent
  std::string host;                   // the supervisor's name for the agent's host
  std::chrono::milliseconds lease{};  // how long the agent runs without a message; zero: no limit
};

// Serves the supervisor until it says that the attempt is over. If no message arrives for the lease, the ranks of this
// launch on this host have been cut off from their supervisor: the agent kills them, removes their copies in shared
// memory (copies_note.h), queues its SLURM job again if that has lost its script (../slurm/lost_script.h), and ends.
// Another agent that is started later for the same folder and host replaces this one.
// With a lease the agent also removes the folder, which ranks have created, at its end. Returns the exit code.
int serve_as_host_agent(const HostAgentOptions& options);

}  // namespace trainctl
