// The fault of a network: a link that is down for a time.
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "parallel/health/faults/fault.h"
#include "parallel/health/faults/table.h"
#include "parallel/launch/host/process.h"

namespace trainctl {
namespace {

// Whether this process may change network interfaces (the capability CAP_NET_ADMIN).
bool may_change_links() {
  constexpr int net_admin = 12;
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "CapEff:" || !(status >> word)) continue;
    return (std::stoull(word, nullptr, 16) >> net_admin & 1) != 0;
  }
  return false;
}

// Whether a default route of this host leads through the interface. Taking it down would remove the route.
bool has_default_route(const std::string& interface) {
  std::ifstream routes("/proc/net/route");
  for (std::string line; std::getline(routes, line);) {
    std::istringstream words(line);
    std::string name, destination;
    if (words >> name >> destination && name == interface && destination == "00000000") return true;
  }
  return false;
}

// Waits until the kernel says that the link is down, at most some seconds: what the ranks send until then may still
// arrive.
void wait_until_down(const std::string& interface) {
  constexpr std::chrono::seconds limit(5);
  const auto end = std::chrono::steady_clock::now() + limit;
  const std::string path = "/sys/class/net/" + interface + "/operstate";
  for (std::string state;;) {
    std::getline(std::ifstream(path), state);
    if (state == "down") return;
    if (std::chrono::steady_clock::now() > end) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  log::warning(format("the link {} is not down after {} s", interface, limit.count()));
}

// Starts a process that takes the link down and, after the time, up again. It belongs to no group of this process, so
// that it outlives the rank. Returns when the link is down.
void cut(const std::string& interface, double seconds) {
  const std::string script =
      format("trap 'ip link set dev {0} up' EXIT; ip link set dev {0} down; sleep {1:.3f}", interface, seconds);
  std::string words[] = {"sh", "-c", script};
  char* arguments[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  pid_t process = 0;
  const bool runs = posix_spawn(&process, "/bin/sh", nullptr, &attributes, arguments, environ) == 0;
  posix_spawnattr_destroy(&attributes);
  if (!runs) return log::warning("the link is not cut, since no process can be started");
  wait_until_down(interface);
}

struct CutLinkFault final : FaultOptions {
  std::string host, interface;
  Seconds time{10};

  static Keys<CutLinkFault> keys() {
    return Keys<CutLinkFault>("cut_link",
                              "Takes a network interface of a host down for a time. Needs the right to change "
                              "interfaces there (the capability CAP_NET_ADMIN).")
        .required("host", &CutLinkFault::host, "The host, which must not be the one of rank 0.")
        .required("interface", &CutLinkFault::interface, "The network interface, such as eth0.")
        .required("step", &CutLinkFault::step, fault_step_meaning, at_least(1))
        .key("for", &CutLinkFault::time, "How long.", more_than(0))
        .check([](const CutLinkFault& fault, const Node& node, Reader& reader) {
          constexpr const char* allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
          const std::string& name = fault.interface;
          if (!name.empty() && name[0] != '-' && name.find_first_not_of(allowed) == std::string::npos) return;
          reader.error(node.find("interface")->location, format("'{}' cannot name a network interface", name));
        });
  }
  std::string text() const override {
    return format("the link {} of host {} is down for {}", interface, host, to_string(time));
  }
  std::string why_impossible(const FaultScene& scene) const override {
    if (std::string why = why_no_host(host, scene); !why.empty()) return why;
    if (!scene.acts_for(host)) return "";
    if (!exists("/sys/class/net/" + interface)) {
      return format("{} has no network interface '{}': see `ip link` there", host, interface);
    }
    if (interface == "lo" || has_default_route(interface)) {
      return format("{} is the loopback interface of {} or has its default route, and the host might stay cut off",
                    interface, host);
    }
    if (find_program("ip").empty()) return format("{} has no program ip: install iproute2 there", host);
    if (may_change_links()) return "";
    return format("trainctl may not change network interfaces on {}: run it as root or with CAP_NET_ADMIN", host);
  }
  void act(FaultScene& scene) const override {
    if (scene.acts_for(host)) cut(interface, time.value);
  }
};

}  // namespace

Section cut_link_section() { return CutLinkFault::keys(); }

}  // namespace trainctl
