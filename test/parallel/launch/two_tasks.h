// A TF_CONFIG cluster of two tasks on this host, for tests of launch agents.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>

#include "parallel/launch/tf_config/tf_config.h"
#include "test/catch.h"

namespace trainctl {

// Returns a port of loopback that nobody listens on.
inline int free_port() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  close(listener);
  return ntohs(address.sin_port);
}

// Returns two workers, of which the second one listens on `port`; `own` is the number of this process' task.
inline TfConfig two_tasks(int port, std::size_t own) {
  return {{{"worker", 0, "127.0.0.1", 1}, {"worker", 1, "127.0.0.1", port}}, own};
}

}  // namespace trainctl
