// Opens a listening socket, or throws an error with the cause.
#include "io/metrics/prometheus/listener.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "core/base/error.h"
#include "core/base/format.h"

namespace trainctl {
namespace {

constexpr int max_waiting = 16;  // connections that the kernel keeps until they are accepted

[[noreturn]] void throw_cannot_listen(const Located<ListenAddress>& address, int error) {
  const auto& [host, port] = address.value;
  std::string why =
      format("port {} of {} cannot be listened on: {}", port, host, std::generic_category().message(error));
  std::string remedy = "use another port (--set log.prometheus=PORT)";
  if (error == EADDRINUSE) {
    why = format("port {} of {} is in use", port, host);
    remedy =
        "end the process that listens there, perhaps another run, or use another port (--set log.prometheus=PORT, or "
        "none)";
  } else if (error == EADDRNOTAVAIL) {
    why = format("{} is not an address of this host, where rank 0 runs", host);
    remedy = "use one of its addresses, or 0.0.0.0 for all";
  } else if (error == EACCES) {
    remedy = "use a port from 1024 on (--set log.prometheus=PORT)";
  }
  throw Error(ErrorKind::config, address.location, "log.prometheus: " + why, remedy);
}

}  // namespace

int listen_on(const Located<ListenAddress>& address) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.value.host.c_str(), std::to_string(address.value.port).c_str(), &hints, &found) != 0) {
    throw_cannot_listen(address, EADDRNOTAVAIL);
  }
  const int listener = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  // The address may be used while closed connections of an earlier run are in TIME_WAIT.
  bool listens = listener >= 0 && setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0;
  // Calls bind by its system call: the ranks preload another bind(), which restricts sockets for all addresses to the
  // network of the ranks (parallel/launch/preload).
  listens = listens && syscall(SYS_bind, listener, found->ai_addr, found->ai_addrlen) == 0;
  listens = listens && listen(listener, max_waiting) == 0;
  const int error = errno;
  freeaddrinfo(found);
  if (listens) return listener;
  if (listener >= 0) close(listener);
  throw_cannot_listen(address, error);
}

}  // namespace trainctl
