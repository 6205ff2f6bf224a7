// Makes TCP sockets that would listen on all addresses of the host listen on a single address: the address of loopback
// or of the cluster's network.
//
// OpenMPI 4 publishes the addresses that oob_tcp_if_include and btl_tcp_if_include name, but listens on all of them.
// This bind() replaces the C library's bind(): in mpirun and orted as a preloaded library (LD_PRELOAD), in a rank as
// part of the program. TRAINCTL_LISTEN_ON names interfaces or networks, like oob_tcp_if_include: "lo", "10.1.0.0/16".
// If it is empty, or names more than one address of this host, addresses are not changed. Uses only the C library.
#include <arpa/inet.h>
#include <dlfcn.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

namespace {

using Bind = int (*)(int, const sockaddr*, socklen_t);

// Returns whether `word` is the name of the interface, or a network that contains the interface's address.
bool is_named(const char* word, const ifaddrs& interface, in_addr address) {
  const char* slash = strchr(word, '/');
  if (slash == nullptr) return strcmp(word, interface.ifa_name) == 0;
  char base[INET_ADDRSTRLEN] = {};
  const auto length = static_cast<size_t>(slash - word);
  in_addr network{};
  const int bits = atoi(slash + 1);
  if (length >= sizeof base || bits < 1 || bits > 32) return false;
  memcpy(base, word, length);
  if (inet_pton(AF_INET, base, &network) != 1) return false;
  const in_addr_t mask = htonl(~in_addr_t{0} << (32 - bits));
  return (network.s_addr & mask) == (address.s_addr & mask);
}

// Finds the IPv4 address of this host that the list names. Returns false if the list names no address or several.
bool find_address(const char* list, in_addr& found) {
  ifaddrs* interfaces = nullptr;
  char words[1024] = {};
  if (strlen(list) >= sizeof words || getifaddrs(&interfaces) != 0) return false;
  strcpy(words, list);
  int count = 0;
  char* rest = nullptr;
  for (char* word = strtok_r(words, ",", &rest); word != nullptr; word = strtok_r(nullptr, ",", &rest)) {
    for (const ifaddrs* each = interfaces; each != nullptr; each = each->ifa_next) {
      if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET) continue;
      in_addr address{};
      memcpy(&address, &reinterpret_cast<const sockaddr_in*>(each->ifa_addr)->sin_addr, sizeof address);
      if (!is_named(word, *each, address)) continue;
      found = address;
      ++count;
    }
  }
  freeifaddrs(interfaces);
  return count == 1;
}

bool is_tcp(int socket) {
  int type = 0;
  socklen_t size = sizeof type;
  return getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int bind(int socket, const sockaddr* address,
                                                           socklen_t size) noexcept {
  const auto next = reinterpret_cast<Bind>(dlsym(RTLD_NEXT, "bind"));
  const char* list = getenv("TRAINCTL_LISTEN_ON");
  in_addr own{};
  if (list == nullptr || *list == '\0' || address == nullptr || !is_tcp(socket)) return next(socket, address, size);
  if (address->sa_family == AF_INET && size >= sizeof(sockaddr_in)) {
    sockaddr_in wanted{};
    memcpy(&wanted, address, sizeof wanted);
    if (wanted.sin_addr.s_addr != INADDR_ANY || !find_address(list, own)) return next(socket, address, size);
    wanted.sin_addr = own;
    return next(socket, reinterpret_cast<const sockaddr*>(&wanted), sizeof wanted);
  }
  if (address->sa_family == AF_INET6 && size >= sizeof(sockaddr_in6)) {
    sockaddr_in6 wanted{};
    memcpy(&wanted, address, sizeof wanted);
    if (!IN6_IS_ADDR_UNSPECIFIED(&wanted.sin6_addr) || !find_address(list, own)) return next(socket, address, size);
    wanted.sin6_addr = in6addr_loopback;  // the ranks use IPv4 networks
    return next(socket, reinterpret_cast<const sockaddr*>(&wanted), sizeof wanted);
  }
  return next(socket, address, size);
}
