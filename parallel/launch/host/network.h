// The network that joins the hosts of a run.
#pragma once

#include <string>
#include <vector>

namespace trainctl {

// The IPv4 network of this host in which all the others lie, as "10.1.0.0/16"; "" where there is none such, or a name
// is not known here (ssh may know it). Asks the resolver, which may take its time.
std::string network_of(const std::vector<std::string>& other_hosts);

// What the addresses of hosts say about the ways between them, where their names say nothing.
struct Ways {
  std::string joining;               // a network in which each host has an address that no other host has; "": none
  std::vector<std::string> useless;  // networks in which several hosts have the same address: Docker's, often

  bool operator==(const Ways&) const = default;
};

// The addresses of this host, each with its network's size: "10.1.0.7/16". Without loopback.
std::vector<std::string> own_networks();

// Finds the ways between this host, by its own_networks(), and the others, by all addresses of each.
Ways find_ways(const std::vector<std::string>& own, const std::vector<std::vector<std::string>>& others);

// The interface of this host whose address lies in such a network; "" where none does.
std::string interface_of(const std::string& network);

// Whether an interface of this host beside loopback is up, with a link.
bool has_network();

}  // namespace trainctl
