// Finds the network that connects the hosts of a run.
#pragma once

#include <string>
#include <vector>

namespace trainctl {

// Returns the IPv4 network of this host that contains all other hosts, such as "10.1.0.0/16"; "" if there is no such
// network, or if a name cannot be resolved here (ssh may know it). Uses the resolver, which may be slow.
std::string network_of(const std::vector<std::string>& other_hosts);

// The networks between hosts, chosen by their addresses if their names are not sufficient.
struct NetworkChoice {
  std::string joining;               // a network in which each host has its own address; "": no such network
  std::vector<std::string> useless;  // networks in which several hosts have the same address, often Docker's

  bool operator==(const NetworkChoice&) const = default;
};

// Returns the addresses of this host except loopback, with their network prefix lengths, such as "10.1.0.7/16".
std::vector<std::string> own_networks();

// Chooses the network between this host and the other hosts. `own`: see own_networks(); `others`: all addresses of each
// other host.
NetworkChoice choose_network(const std::vector<std::string>& own, const std::vector<std::vector<std::string>>& others);

// Returns the interface of this host that has an address in the network; "" if no interface has one.
std::string interface_of(const std::string& network);

// Returns whether an interface of this host other than loopback is up and has a link.
bool has_network();

}  // namespace trainctl
