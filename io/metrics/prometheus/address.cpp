// Parses an address and a port.
#include "io/metrics/prometheus/address.h"

#include <arpa/inet.h>

#include <optional>
#include <string_view>

#include "core/base/format.h"
#include "core/spec/units.h"

namespace trainctl {
namespace {

std::optional<int> port_in(std::string_view text) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  const auto port = parse_integer(text);
  return port && *port >= 1 && *port <= 65535 ? std::optional(static_cast<int>(*port)) : std::nullopt;
}

bool is_address(int family, const std::string& text) {
  in6_addr address{};
  return inet_pton(family, text.c_str(), &address) == 1;
}

std::optional<ListenAddress> address_in(const std::string& text) {
  ListenAddress address;
  const std::size_t colon = text.rfind(':');
  const auto port = port_in(text.substr(colon == std::string::npos ? 0 : colon + 1));
  if (!port) return std::nullopt;
  address.port = *port;
  if (colon == std::string::npos) return address;
  std::string host = text.substr(0, colon);
  const bool brackets = host.starts_with('[') && host.ends_with(']');
  if (brackets) host = host.substr(1, host.size() - 2);
  if (!is_address(brackets ? AF_INET6 : AF_INET, host)) return std::nullopt;
  address.host = host;
  return address;
}

}  // namespace

std::string to_string(const ListenAddress& address) {
  const bool brackets = address.host.find(':') != std::string::npos;
  return brackets ? format("[{}]:{}", address.host, address.port) : format("{}:{}", address.host, address.port);
}

bool Value<ListenAddress>::read(const Node& node, Reader& reader, ListenAddress& value) {
  if (const auto read = node.is_scalar() ? address_in(node.text) : std::nullopt) {
    value = *read;
    return true;
  }
  reader.expected(node, "a port such as 9464, or an address and a port such as '0.0.0.0:9464' or '[::]:9464'");
  return false;
}

}  // namespace trainctl
