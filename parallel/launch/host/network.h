// Finds the network that connects the hosts of a run.
#pragma once

#include <string>
#include <vector>

namespace trainctl {

// The IPv4 network of this host that contains all the others, such as "10.1.0.0/16"; "" if there is none, or a name
// cannot be resolved here (ssh may know it). Uses the resolver, which may be slow.
std::string network_of(const std::vector<std::string>& other_hosts);

// The networks between hosts, chosen by their addresses if their names are not sufficient.
struct NetworkChoice {
  std::string joining;               // a network in which each host has an address that no other host has; "": none
  std::vector<std::string> useless;  // networks in which several hosts have the same address, often Docker's

  bool operator==(const NetworkChoice&) const = default;
};

// The addresses of this host, each with its network prefix length: "10.1.0.7/16". Without loopback.
std::vector<std::string> own_networks();

// Chooses the network between this host (`own`, see own_networks()) and the other hosts (all addresses of each).
NetworkChoice choose_network(const std::vector<std::string>& own, const std::vector<std::vector<std::string>>& others);

// The interface of this host that has an address in the network; "" if there is none.
std::string interface_of(const std::string& network);

// Whether an interface of this host other than loopback is up and has a link.
bool has_network();

}  // namespace trainctl
