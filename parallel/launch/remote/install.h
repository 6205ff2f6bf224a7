// This installation of trainctl, sent to other hosts.
#pragma once

#include "parallel/launch/remote/host_check.h"

namespace trainctl {

// The files and folders of the installation that a program belongs to, by absolute paths: a whole bundle where it lies
// in one, else the program and its modules. What holds the program comes last.
std::vector<std::string> installation_of(const std::string& program);

// Sends the installation of how.program to the hosts that lack the program or hold another one, to the same place.
// Where that is cut off, the program's hash is not the same, and the next call sends it again. Returns those hosts.
// Throws Error{peer} that names every host on which it could not be written.
std::vector<std::string> sync_hosts(const std::vector<std::string>& hosts, const HostCheck& how);

}  // namespace trainctl
