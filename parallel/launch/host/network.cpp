// Finds networks by the addresses of hosts and the kernel's routes.
#include "parallel/launch/host/network.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>

#include "core/base/format.h"
#include "parallel/launch/hosts.h"

namespace trainctl {
namespace {

// An IPv4 network, in host byte order.
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

// Returns the address of this host from which it would send to another address. Does not send data.
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

// An address of this host, and its network.
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

std::string address_text(std::uint32_t address) {
  const in_addr bytes{htonl(address)};
  std::array<char, INET_ADDRSTRLEN> text{};
  inet_ntop(AF_INET, &bytes, text.data(), text.size());
  return text.data();
}

std::string text_of(const Network& network) {
  return format("{}/{}", address_text(network.base), std::popcount(network.mask));
}

std::optional<std::uint32_t> parse_address(const std::string& text) {
  in_addr bytes{};
  return inet_pton(AF_INET, text.c_str(), &bytes) == 1 ? std::optional(ntohl(bytes.s_addr)) : std::nullopt;
}

struct PrefixedAddress {
  std::uint32_t address = 0;
  Network network;
};

// Parses an address with the length of its network prefix, such as "10.1.0.7/16".
std::optional<PrefixedAddress> parse_prefixed(const std::string& text) {
  const std::size_t slash = text.find('/');
  const std::optional<std::uint32_t> address = parse_address(text.substr(0, slash));
  const int bits = slash == std::string::npos ? 0 : std::atoi(text.c_str() + slash + 1);
  if (!address || bits < 1 || bits > 32) return {};
  const std::uint32_t mask = ~std::uint32_t{0} << (32 - bits);
  return PrefixedAddress{*address, {*address & mask, mask}};
}

// Returns the addresses of a host that belong to the network.
std::vector<std::uint32_t> addresses_within(const Network& network, const std::vector<std::string>& host) {
  std::vector<std::uint32_t> within;
  for (const std::string& text : host) {
    const std::optional<std::uint32_t> address = parse_address(text);
    if (address && (*address & network.mask) == network.base) within.push_back(*address);
  }
  return within;
}

}  // namespace

std::string network_of(const std::vector<std::string>& other_hosts) {
  std::optional<Network> all;
  for (const std::string& host : other_hosts) {
    const std::optional<std::uint32_t> address = resolve(without_user(host));
    const std::optional<std::uint32_t> own = address ? own_address_towards(*address) : std::nullopt;
    const std::optional<Network> network = own ? network_with(*own) : std::nullopt;
    if (!network || (*address & network->mask) != network->base || (all && !(*all == *network))) return "";
    all = network;
  }
  return all ? text_of(*all) : "";
}

std::vector<std::string> own_networks() {
  std::vector<std::string> all;
  for (const OwnAddress& each : own_addresses()) {
    constexpr std::uint32_t loopback = 127;
    if (each.address >> 24 == loopback) continue;
    all.push_back(format("{}/{}", address_text(each.address), std::popcount(each.network.mask)));
  }
  return all;
}

NetworkChoice choose_network(const std::vector<std::string>& own, const std::vector<std::vector<std::string>>& others) {
  NetworkChoice choice;
  for (const std::string& text : own) {
    const std::optional<PrefixedAddress> here = parse_prefixed(text);
    if (!here) continue;
    std::map<std::uint32_t, int> hosts_with{{here->address, 1}};  // number of hosts that have each address
    for (const auto& host : others) {
      for (const std::uint32_t address : addresses_within(here->network, host)) ++hosts_with[address];
    }
    const auto has_own = [&](const std::vector<std::string>& host) {
      const std::vector<std::uint32_t> within = addresses_within(here->network, host);
      return std::any_of(within.begin(), within.end(), [&](std::uint32_t each) { return hosts_with[each] == 1; });
    };
    const bool joins = hosts_with[here->address] == 1 && std::all_of(others.begin(), others.end(), has_own);
    const bool shared =
        std::any_of(hosts_with.begin(), hosts_with.end(), [](const auto& each) { return each.second > 1; });
    if (joins && choice.joining.empty()) choice.joining = text_of(here->network);
    if (shared) choice.useless.push_back(text_of(here->network));
  }
  return choice;
}

std::string interface_of(const std::string& network) {
  for (const OwnAddress& each : own_addresses()) {
    if (text_of(each.network) == network) return each.interface;
  }
  return "";
}

bool has_network() {
  ifaddrs* interfaces = nullptr;
  if (getifaddrs(&interfaces) != 0) return true;  // unknown: assume that there is a network
  constexpr unsigned up = IFF_UP | IFF_RUNNING;
  bool found = false;
  for (const ifaddrs* each = interfaces; each != nullptr; each = each->ifa_next) {
    found = found || ((each->ifa_flags & up) == up && (each->ifa_flags & IFF_LOOPBACK) == 0);
  }
  freeifaddrs(interfaces);
  return found;
}

}  // namespace trainctl
