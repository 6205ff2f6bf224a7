// `log.prometheus`: the address on which a run answers Prometheus.
#pragma once

#include <string>

#include "core/spec/values.h"

namespace trainctl {

struct ListenAddress {
  std::string host = "127.0.0.1";  // an IPv4 or IPv6 address, without brackets
  int port = 0;

  bool operator==(const ListenAddress&) const = default;
};

// Returns text such as "127.0.0.1:9464" or "[::1]:9464".
std::string to_string(const ListenAddress& address);

// Reads a port, which means the port of the loopback interface, or an address and a port.
template <>
struct Value<ListenAddress> {
  static TypeInfo type() { return {.kind = TypeInfo::Kind::string}; }
  static bool read(const Node& node, Reader& reader, ListenAddress& value);
  static Node write(const ListenAddress& value) { return scalar_node(to_string(value)); }
};

}  // namespace trainctl
