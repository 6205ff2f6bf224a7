// A small HTTP server that answers GET /metrics, on threads of its own.
//
// What a client does costs the program little, whoever it is: a few connections at once, each for a few seconds and one
// request of a few kilobytes, and so many in a second; what is beyond waits or is closed.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/spec/values.h"
#include "io/metrics/prometheus/address.h"

namespace trainctl {

class MetricsServer {
 public:
  // Listens when the constructor returns. `text`: what GET /metrics is answered with, called on several threads at
  // once. Throws Error{config} with the place of the address where it is in use, or cannot be listened on.
  MetricsServer(const Located<ListenAddress>& address, std::function<std::string()> text);
  ~MetricsServer();  // closes all connections
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

 private:
  class Server;
  std::unique_ptr<Server> server_;
};

}  // namespace trainctl
