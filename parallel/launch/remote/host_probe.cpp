// Asks hosts in a child process.
#include "parallel/launch/remote/host_probe.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <exception>
#include <sstream>

namespace trainctl {
namespace {

// Returns a line for each host that can take part, and a last line ".".
std::string answers_of(const std::vector<std::string>& hosts, const HostCheck& how) {
  const auto unavailable = unavailable_hosts(hosts, how);
  std::string text;
  for (const std::string& host : hosts) {
    const auto is_host = [&host](const auto& each) { return each.first == host; };
    if (std::none_of(unavailable.begin(), unavailable.end(), is_host)) text += host + "\n";
  }
  return text + ".\n";
}

}  // namespace

HostProbe::HostProbe(const std::vector<std::string>& hosts, const HostCheck& how) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    ended_ = true;
    return;
  }
  const pid_t parent = getpid(), child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    try {
      const std::string text = answers_of(hosts, how);  // shorter than the capacity of a pipe for thousands of hosts
      _exit(write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
    } catch (const std::exception&) {
      _exit(1);
    }
  }
  close(ends[1]);
  answers_ = ends[0];
}

HostProbe::~HostProbe() {
  if (answers_ >= 0) close(answers_);
}

std::optional<std::vector<std::string>> HostProbe::available() {
  std::array<char, 4096> buffer{};
  while (!ended_) {
    const ssize_t count = read(answers_, buffer.data(), buffer.size());
    if (count < 0) return {};  // no more text yet
    if (count == 0) ended_ = true;
    text_.append(buffer.data(), static_cast<std::size_t>(count));
  }
  std::vector<std::string> hosts;
  std::istringstream lines(text_);
  for (std::string line; std::getline(lines, line);) {
    if (line == ".") return hosts;
    hosts.push_back(line);
  }
  return std::vector<std::string>();  // the child was killed
}

}  // namespace trainctl
