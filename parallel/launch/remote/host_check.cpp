// Runs a shell on each host, which prints the program's SHA-256, the space for temporary files, the host's addresses
// and the time.
#include "parallel/launch/remote/host_check.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <sstream>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/hash.h"
#include "core/base/shell_words.h"
#include "parallel/launch/remote/shell.h"

namespace trainctl {
namespace {

std::string hash_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> buffer(1 << 20);
  Sha256 hash;
  while (file.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || file.gcount() > 0) {
    hash.update(buffer.data(), static_cast<std::size_t>(file.gcount()));
  }
  return hash.finish();
}

enum class ProgramState { same, other, missing, unknown };

// The answer of a host: its program, its folder for temporary files, its clock and its addresses.
struct HostInfo {
  ProgramState program = ProgramState::unknown;
  std::optional<std::int64_t> bytes_left;  // free bytes in the file system of that folder
  std::string mounted_at;                  // mount point of that file system
  std::int64_t seconds_ahead = 0;          // smallest possible offset of its clock, given the duration of the answer
  std::vector<std::string> addresses;
  bool has_no_route = false;  // whether it lists its IPv4 routes, and there is none
};

// Returns a random word that no login script prints by chance. The probe prints its texts between two such words.
std::string new_mark() {
  std::random_device random;
  return format("trainctl-{:08x}{:08x}", random(), random());
}

// Returns the value that the probe has printed under a name, independent of other output; "" if there is no such value.
std::string value_of(const std::string& output, const std::string& mark, const std::string& name) {
  const std::string before = format("{} {} ", mark, name);
  const std::size_t found = output.find(before);
  if (found == std::string::npos) return "";
  const std::size_t begin = found + before.size(), end = output.find(" " + mark, begin);
  return end == std::string::npos ? "" : output.substr(begin, end - begin);
}

// Returns the addresses in the kernel's /proc/net/fib_trie: "|-- 10.1.0.7" followed by "/32 host LOCAL".
std::vector<std::string> addresses_in(const std::string& trie) {
  std::vector<std::string> addresses;
  std::istringstream words(trie);
  std::string address, before;
  for (std::string word; words >> word; before = word) {
    if (before == "|--") address = word;
    if (before == "host" && word == "LOCAL" && !address.starts_with("127.")) addresses.push_back(address);
  }
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  return addresses;
}

HostInfo info_of(const RemoteAnswer& answer, const std::string& mark, const std::string& hash) {
  HostInfo info;
  const std::string seconds = value_of(answer.output, mark, "seconds");
  if (!answer.good() || seconds.empty()) return info;
  const std::string program = value_of(answer.output, mark, "program");
  const std::string first = program.substr(0, program.find(' '));
  info.program = first == hash                 ? ProgramState::same
                 : first == "missing"          ? ProgramState::missing
                 : first.size() == hash.size() ? ProgramState::other
                                               : ProgramState::unknown;
  // df -P prints: file system, size, used and free KiB, use in percent, mount point.
  std::istringstream words(value_of(answer.output, mark, "disk"));
  std::string skipped;
  std::int64_t left = 0;
  if (words >> skipped >> skipped >> skipped >> left >> skipped >> info.mounted_at) info.bytes_left = left * 1024;
  const std::int64_t there = std::strtoll(seconds.c_str(), nullptr, 10);
  info.seconds_ahead = there > answer.end ? there - answer.end : there < answer.begin ? there - answer.begin : 0;
  info.addresses = addresses_in(value_of(answer.output, mark, "addresses"));
  info.has_no_route = value_of(answer.output, mark, "routes") == "1";  // the line with the names of the columns
  return info;
}

// Returns the problem of a host; "" if it has no problem.
std::string problem_of(const RemoteAnswer& answer, const HostInfo& info, const HostCheck& how) {
  switch (info.program) {
    case ProgramState::same:
      if (info.bytes_left.value_or(how.temporary) >= how.temporary) return "";
      return format("{} has {} left, but mpirun's temporary files need {}", info.mounted_at,
                    byte_text(*info.bytes_left), byte_text(how.temporary));
    case ProgramState::other:
      return format("its {} differs from this host's", how.program);
    case ProgramState::missing:
      return format("there is no {}", how.program);
    case ProgramState::unknown:
      break;
  }
  return answer.why(how.deadline);
}

// The answer of a host, and the result of its shell.
struct AskedHost {
  RemoteAnswer answer;
  HostInfo info;
};

std::vector<AskedHost> ask(const std::vector<std::string>& hosts, const HostCheck& how) {
  const std::string path = shell_word(how.program), mark = new_mark(), hash = hash_of(how.program);
  const auto say = [&mark](const std::string& name, const std::string& command) {
    return format("echo; echo \"{} {} $({}) {}\"; ", mark, name, command, mark);
  };
  const std::string script =
      say("program", format("if [ -f {0} ]; then sha256sum < {0}; else echo missing; fi", path)) +
      say("disk", "df -Pk \"${TMPDIR:-/tmp}\" 2>/dev/null | tail -n 1") +
      say("routes", "wc -l 2>/dev/null < /proc/net/route") +
      say("addresses", "tr \"\\n\" \" \" 2>/dev/null < /proc/net/fib_trie") + say("seconds", "date +%s");
  std::vector<AskedHost> asked;
  for (RemoteAnswer& answer : run_on_hosts(how.agent, hosts, script, how.deadline)) {
    HostInfo info = info_of(answer, mark, hash);
    asked.push_back({std::move(answer), std::move(info)});
  }
  return asked;
}

// Returns the hosts that answer, but have no program or a different one.
std::vector<std::string> hosts_without_program(const std::vector<std::string>& hosts, const HostCheck& how) {
  std::vector<std::string> without;
  for (const auto& [answer, info] : ask(hosts, how)) {
    if (info.program == ProgramState::other || info.program == ProgramState::missing) without.push_back(answer.host);
  }
  return without;
}

// Returns the absolute paths of the files and folders of a program's installation: a whole bundle if the program is
// part of a bundle, otherwise the program and its modules. The path that contains the program comes last.
std::vector<std::string> installation_of(const std::string& program) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(program).parent_path();
  std::error_code ignored;
  std::vector<std::string> paths;
  if (folder.filename() == "libexec" && fs::exists(folder / "enter", ignored)) {  // a bundle, see scripts/bundle
    for (const auto& entry : fs::directory_iterator(folder.parent_path(), ignored)) {
      if (entry.path() != folder) paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    paths.push_back(folder);
    return paths;
  }
  for (const char* module : {"trainctl_cuda.so", "trainctl_listen.so"}) {
    for (const fs::path& file : {folder / module, (folder / "../lib/trainctl" / module).lexically_normal()}) {
      if (!fs::exists(file, ignored)) continue;
      paths.push_back(file);
      break;
    }
  }
  paths.push_back(program);
  return paths;
}

}  // namespace

CheckedHosts check_hosts(const std::vector<std::string>& hosts, const HostCheck& how) {
  std::string problems;
  CheckedHosts checked;
  int bad = 0;
  for (const auto& [answer, info] : ask(hosts, how)) {
    checked.addresses.push_back(info.addresses);
    if (const std::string problem = problem_of(answer, info, how); !problem.empty()) {
      problems += format("{}{}: {}", bad++ == 0 ? "" : "; ", answer.host, problem);
    } else if (const std::int64_t ahead = info.seconds_ahead; std::abs(ahead) > 5) {
      checked.warnings.push_back(format("the clock of {} is {} s {} this host's", answer.host, std::abs(ahead),
                                        ahead > 0 ? "ahead of" : "behind"));
    }
  }
  if (bad == 0) return checked;
  throw Error(ErrorKind::peer, format("{} of the {} other hosts cannot take part: {}", bad, hosts.size(), problems),
              format("each must answer `{} HOST true` without a password, and have the same trainctl at the same path "
                     "(--sync sends it there)",
                     how.agent.front()));
}

std::vector<std::pair<std::string, std::string>> unavailable_hosts(const std::vector<std::string>& hosts,
                                                                   const HostCheck& how) {
  std::vector<std::pair<std::string, std::string>> unavailable;
  for (const auto& [answer, info] : ask(hosts, how)) {
    std::string problem = problem_of(answer, info, how);
    if (problem.empty() && how.needs_route && info.has_no_route) problem = "no network interface of it is up";
    if (!problem.empty()) unavailable.emplace_back(answer.host, std::move(problem));
  }
  return unavailable;
}

std::vector<std::string> sync_hosts(const std::vector<std::string>& hosts, const HostCheck& how) {
  constexpr std::chrono::minutes time_limit(10);
  const std::vector<std::string> without = hosts_without_program(hosts, how);
  if (without.empty()) return without;
  std::vector<std::string> archive = {"tar", "-C", "/", "-cf", "-", "--"};
  for (const std::string& path : installation_of(how.program))
    archive.push_back(std::filesystem::path(path).relative_path());
  std::string problems;
  for (const RemoteAnswer& answer :
       run_on_hosts(how.agent, without, "tar -C / --no-same-owner -xf -", time_limit, shell_line(archive))) {
    if (!answer.good())
      problems += format("{}{}: {}", problems.empty() ? "" : "; ", answer.host, answer.why(time_limit));
  }
  if (problems.empty()) return without;
  throw Error(ErrorKind::peer, format("trainctl could not be sent to all hosts: {}", problems),
              format("make {} writable there, or install trainctl in a writable folder",
                     std::filesystem::path(how.program).parent_path().string()));
}
}  // namespace trainctl
