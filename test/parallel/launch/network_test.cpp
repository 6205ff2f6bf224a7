// Tests the choice of the network that joins the hosts, from their addresses only.
#include "parallel/launch/host/network.h"

#include "test/catch.h"

namespace trainctl::network_test {
namespace {

const std::vector<std::string> own = {"172.17.0.1/16", "10.1.0.1/24", "192.168.5.1/30"};

TEST_CASE("hosts are joined by the network in which each has an address of its own") {
  CHECK(choose_network(own, {{"10.1.0.2", "172.17.0.1"}, {"172.17.0.1", "10.1.0.3"}}) ==
        NetworkChoice{"10.1.0.0/24", {"172.17.0.0/16"}});
  CHECK(choose_network(own, {{"10.1.0.2", "192.168.5.2"}}) == NetworkChoice{"10.1.0.0/24", {}});
  CHECK(choose_network(own, {{"192.168.5.2"}}) == NetworkChoice{"192.168.5.0/30", {}});
}

TEST_CASE("a network in which hosts have the same address does not join them") {
  CHECK(choose_network(own, {{"10.1.0.2"}, {"10.1.0.2"}}) == NetworkChoice{"", {"10.1.0.0/24"}});
  CHECK(choose_network(own, {{"10.1.0.1"}}) == NetworkChoice{"", {"10.1.0.0/24"}});
  CHECK(choose_network(own, {{"10.1.0.2", "10.1.0.9"}, {"10.1.0.9", "10.1.0.3"}}) ==
        NetworkChoice{"10.1.0.0/24", {"10.1.0.0/24"}});
}

TEST_CASE("hosts without a common network with this host are not joined") {
  CHECK(choose_network(own, {{"10.1.1.2", "172.17.0.1"}}) == NetworkChoice{"", {"172.17.0.0/16"}});
  CHECK(choose_network(own, {{"10.1.0.2"}, {}}) == NetworkChoice{"", {}});
  CHECK(choose_network(own, {{"10.1.0.2"}, {"10.1.5.3"}}) == NetworkChoice{"", {}});
  CHECK(choose_network({}, {{"10.1.0.2"}}) == NetworkChoice{"", {}});
  CHECK(choose_network({"10.1.0.1", "x/8", "10.1.0.1/0", "10.1.0.1/33"}, {{"10.1.0.2", "fe80::1"}}) ==
        NetworkChoice{"", {}});
}

TEST_CASE("this host's networks are written as an address with a prefix length, without loopback") {
  for (const std::string& text : own_networks()) {
    CAPTURE(text);
    CHECK(text.find('/') != std::string::npos);
    CHECK_FALSE(text.starts_with("127."));
  }
}

}  // namespace
}  // namespace trainctl::network_test
