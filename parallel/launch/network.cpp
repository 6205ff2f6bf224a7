// Asks the resolver where the hosts are, and the kernel how it would reach them.
#include "parallel/launch/network.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cstring>
#include <optional>

#include "core/base/format.h"

namespace trainctl {
namespace {

// In the byte order of the host.
struct Network {
  std::uint32_t base = 0;
  std::uint32_t mask = 0;

  bool operator==(const Network&) const = default;
};

std::uint32_t number_of(const sockaddr* address) {
  sockaddr_in known{};
  std::memcpy(&known, address, sizeof known);
  return ntohl(known.sin_addr.s_addr);
}

std::optional<std::uint32_t> resolve(const std::string& host) {
  addrinfo wanted{};
  wanted.ai_family = AF_INET;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &wanted, &found) != 0) return {};
  const std::uint32_t address = number_of(found->ai_addr);
  freeaddrinfo(found);
  return address;
}

// The address of this host from which it would send to another. Nothing is sent.
std::optional<std::uint32_t> own_address_towards(std::uint32_t address) {
  const int probe = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return {};
  sockaddr_in ends{};
  ends.sin_family = AF_INET;
  ends.sin_port = htons(9);
  ends.sin_addr.s_addr = htonl(address);
  socklen_t size = sizeof ends;
  const bool known = connect(probe, reinterpret_cast<const sockaddr*>(&ends), sizeof ends) == 0 &&
                     getsockname(probe, reinterpret_cast<sockaddr*>(&ends), &size) == 0;
  close(probe);
  if (!known) return {};
  return ntohl(ends.sin_addr.s_addr);
}

// An address of this host, and the network that it lies in.
struct OwnAddress {
  std::string interface;
  std::uint32_t address = 0;
  Network network;
};

std::vector<OwnAddress> own_addresses() {
  ifaddrs* interfaces = nullptr;
  if (getifaddrs(&interfaces) != 0) return {};
  std::vector<OwnAddress> all;
  for (const ifaddrs* each = interfaces; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_netmask == nullptr || each->ifa_addr->sa_family != AF_INET) continue;
    const std::uint32_t address = number_of(each->ifa_addr), mask = number_of(each->ifa_netmask);
    all.push_back({each->ifa_name, address, {address & mask, mask}});
  }
  freeifaddrs(interfaces);
  return all;
}

std::optional<Network> network_with(std::uint32_t own) {
  for (const OwnAddress& each : own_addresses()) {
    if (each.address == own) return each.network;
  }
  return {};
}

std::string text_of(const Network& network) {
  in_addr base{htonl(network.base)};
  std::array<char, INET_ADDRSTRLEN> text{};
  inet_ntop(AF_INET, &base, text.data(), text.size());
  return format("{}/{}", text.data(), std::popcount(network.mask));
}

}  // namespace

std::string network_of(const std::vector<std::string>& other_hosts) {
  std::optional<Network> all;
  for (const std::string& host : other_hosts) {
    const std::optional<std::uint32_t> address = resolve(host);
    const std::optional<std::uint32_t> own = address ? own_address_towards(*address) : std::nullopt;
    const std::optional<Network> network = own ? network_with(*own) : std::nullopt;
    if (!network || (*address & network->mask) != network->base || (all && !(*all == *network))) return "";
    all = network;
  }
  return all ? text_of(*all) : "";
}

std::string interface_of(const std::string& network) {
  for (const OwnAddress& each : own_addresses()) {
    if (text_of(each.network) == network) return each.interface;
  }
  return "";
}

}  // namespace trainctl
