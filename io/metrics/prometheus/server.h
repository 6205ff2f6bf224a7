// A small HTTP server that answers GET /metrics, on threads of its own.
//
// Limits keep the load small for all clients: a few open connections, each for a few seconds and one request of a few
// kilobytes, and a maximal number of new connections per second. Further connections wait or are closed.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/spec/values.h"
#include "io/metrics/prometheus/address.h"

namespace trainctl {

class MetricsServer {
 public:
  // Listens when the constructor returns. `text` returns the answer to GET /metrics and is called on several threads at
  // once. Throws Error{config} with the location of the address in the config if the address is in use or cannot be
  // used.
  MetricsServer(const Located<ListenAddress>& address, std::function<std::string()> text);
  ~MetricsServer();  // closes all connections
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

 private:
  class Server;
  std::unique_ptr<Server> server_;
};

// Answers the request of one connection, as the server does, and closes the socket. Takes ownership of the socket.
void answer_connection(int socket, std::function<std::string()> text);

}  // namespace trainctl
