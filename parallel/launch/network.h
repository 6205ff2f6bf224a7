// The network that joins the hosts of a run.
#pragma once

#include <string>
#include <vector>

namespace trainctl {

// The IPv4 network of this host in which all the others lie, as "10.1.0.0/16"; "" where there is none such, or a name
// is not known here (ssh may know it). Asks the resolver, which may take its time.
std::string network_of(const std::vector<std::string>& other_hosts);

// The interface of this host whose address lies in such a network; "" where none does.
std::string interface_of(const std::string& network);

}  // namespace trainctl
