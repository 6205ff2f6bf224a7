// Tests that hosts are asked in the background whether they can take part.
#include "parallel/launch/remote/host_probe.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "parallel/launch/host/process.h"
#include "test/catch.h"
#include "test/support/files.h"

namespace trainctl::test::host_probe_test {
namespace {

using Clock = std::chrono::steady_clock;
using Hosts = std::vector<std::string>;

// A remote shell whose host "down" refuses connections and whose host "slow" answers after a second.
HostCheck through_shell(const TempFolder& folder) {
  const std::string path = folder / "shell";
  std::ofstream(path)
      << "#!/bin/sh\n[ \"$1\" != down ] || exit 255\n[ \"$1\" != slow ] || sleep 1\nshift\nexec sh -c \"$*\"\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return {{path}, own_path(), 0, std::chrono::seconds(30)};
}

Hosts answer_of(HostProbe& probe) {
  for (const auto end = Clock::now() + std::chrono::seconds(30); Clock::now() < end;) {
    if (const auto hosts = probe.available()) return *hosts;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return {"no answer"};
}

// Whether this host has a network: hosts without one cannot take part.
bool has_route() {
  std::ifstream routes("/proc/net/route");
  std::string names, route;
  return std::getline(routes, names) && std::getline(routes, route);
}

}  // namespace

TEST_CASE("a probe names the hosts that can take part, and does not wait for them") {
  if (!has_route()) return;
  const TempFolder folder;
  const HostCheck how = through_shell(folder);
  const auto begin = Clock::now();
  HostProbe probe({"up", "down", "slow"}, how);
  CHECK_FALSE(probe.available());
  CHECK(Clock::now() - begin < std::chrono::seconds(1));
  CHECK(answer_of(probe) == Hosts{"up", "slow"});
  CHECK(answer_of(probe) == Hosts{"up", "slow"});  // asked once more, the answer is the same
  HostProbe none({"down"}, how);
  CHECK(answer_of(none).empty());
  const HostProbe abandoned({"slow"}, how);  // its end is not awaited
}

}  // namespace trainctl::test::host_probe_test
