// Sockets that wait for connections, and the processes that own them.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace trainctl {

// A process and all its descendants.
std::vector<pid_t> family_of(pid_t ancestor);

// The local addresses, as hexadecimal digits of /proc/net/tcp and tcp6, of TCP sockets that these processes listen on.
std::vector<std::string> listening_addresses(const std::vector<pid_t>& processes);

// Whether an address is a loopback address.
bool is_loopback(const std::string& address);

}  // namespace trainctl
