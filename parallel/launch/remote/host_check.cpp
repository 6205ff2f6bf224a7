// A shell on each host tells the program's SHA-256, the room for temporary files, the host's addresses and the time.
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
#include "parallel/launch/host/shell_words.h"
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

enum class Holds { same, other, nothing, unknown };

// What a host says of the program, of its folder for temporary files, of its clock and of its addresses.
struct HostInfo {
  Holds program = Holds::unknown;
  std::optional<std::int64_t> bytes_left;  // in the file system of that folder,
  std::string mounted_at;                  // which lies here
  std::int64_t seconds_ahead = 0;          // as far as the time that the answer took can tell
  std::vector<std::string> addresses;
};

// A word that no login script of another host prints by chance. What it stands around is the probe's.
std::string new_mark() {
  std::random_device random;
  return format("trainctl-{:08x}{:08x}", random(), random());
}

// The value that the probe has said under a name, "" where it has not: whatever a login script prints around it.
std::string value_of(const std::string& output, const std::string& mark, const std::string& name) {
  const std::string before = format("{} {} ", mark, name);
  const std::size_t found = output.find(before);
  if (found == std::string::npos) return "";
  const std::size_t begin = found + before.size(), end = output.find(" " + mark, begin);
  return end == std::string::npos ? "" : output.substr(begin, end - begin);
}

// The addresses of a host by the kernel's /proc/net/fib_trie: "|-- 10.1.0.7" and then "/32 host LOCAL".
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

HostInfo facts_of(const RemoteAnswer& answer, const std::string& mark, const std::string& hash) {
  HostInfo facts;
  const std::string seconds = value_of(answer.output, mark, "seconds");
  if (!answer.good() || seconds.empty()) return facts;
  const std::string program = value_of(answer.output, mark, "program");
  const std::string first = program.substr(0, program.find(' '));
  facts.program = first == hash                 ? Holds::same
                  : first == "missing"          ? Holds::nothing
                  : first.size() == hash.size() ? Holds::other
                                                : Holds::unknown;
  // df -P: file system, size, used and left in KiB, share, where it is mounted
  std::istringstream words(value_of(answer.output, mark, "disk"));
  std::string skipped;
  std::int64_t left = 0;
  if (words >> skipped >> skipped >> skipped >> left >> skipped >> facts.mounted_at) facts.bytes_left = left * 1024;
  const std::int64_t there = std::strtoll(seconds.c_str(), nullptr, 10);
  facts.seconds_ahead = there > answer.end ? there - answer.end : there < answer.begin ? there - answer.begin : 0;
  facts.addresses = addresses_in(value_of(answer.output, mark, "addresses"));
  return facts;
}

// What is wrong with the host; "" where nothing is.
std::string problem_of(const RemoteAnswer& answer, const HostInfo& facts, const HostCheck& how) {
  switch (facts.program) {
    case Holds::same:
      if (facts.bytes_left.value_or(how.temporary) >= how.temporary) return "";
      return format("{} has {} left, and mpirun's temporary files need {}", facts.mounted_at,
                    byte_text(*facts.bytes_left), byte_text(how.temporary));
    case Holds::other:
      return format("its {} is another one than here", how.program);
    case Holds::nothing:
      return format("there is no {}", how.program);
    case Holds::unknown:
      break;
  }
  return answer.why(how.deadline);
}

// What each host says, with the shell's own answer.
struct AskedHost {
  RemoteAnswer answer;
  HostInfo facts;
};

std::vector<AskedHost> ask(const std::vector<std::string>& hosts, const HostCheck& how) {
  const std::string path = shell_word(how.program), mark = new_mark(), hash = hash_of(how.program);
  const auto say = [&mark](const std::string& name, const std::string& command) {
    return format("echo; echo \"{} {} $({}) {}\"; ", mark, name, command, mark);
  };
  const std::string script =
      say("program", format("if [ -f {0} ]; then sha256sum < {0}; else echo missing; fi", path)) +
      say("disk", "df -Pk \"${TMPDIR:-/tmp}\" 2>/dev/null | tail -n 1") +
      say("addresses", "tr \"\\n\" \" \" 2>/dev/null < /proc/net/fib_trie") + say("seconds", "date +%s");
  std::vector<AskedHost> asked;
  for (RemoteAnswer& answer : run_on_hosts(how.agent, hosts, script, how.deadline)) {
    HostInfo facts = facts_of(answer, mark, hash);
    asked.push_back({std::move(answer), std::move(facts)});
  }
  return asked;
}

// Of the hosts that answer, those that lack the program or hold another one.
std::vector<std::string> hosts_without_program(const std::vector<std::string>& hosts, const HostCheck& how) {
  std::vector<std::string> without;
  for (const auto& [answer, facts] : ask(hosts, how)) {
    if (facts.program == Holds::other || facts.program == Holds::nothing) without.push_back(answer.host);
  }
  return without;
}

// The files and folders of the installation that a program belongs to, by absolute paths: a whole bundle where it lies
// in one, else the program and its modules. What holds the program comes last.
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
  for (const auto& [answer, facts] : ask(hosts, how)) {
    checked.addresses.push_back(facts.addresses);
    if (const std::string problem = problem_of(answer, facts, how); !problem.empty()) {
      problems += format("{}{}: {}", bad++ == 0 ? "" : "; ", answer.host, problem);
    } else if (const std::int64_t ahead = facts.seconds_ahead; std::abs(ahead) > 5) {
      checked.warnings.push_back(format("the clock of {} is {} s {} this host's", answer.host, std::abs(ahead),
                                        ahead > 0 ? "ahead of" : "behind"));
    }
  }
  if (bad == 0) return checked;
  throw Error(ErrorKind::peer, format("{} of the {} other hosts cannot take part: {}", bad, hosts.size(), problems),
              format("each must answer `{} HOST true` without a password, and hold the same trainctl at the same place "
                     "(--sync sends it there)",
                     how.agent.front()));
}

std::vector<std::string> sync_hosts(const std::vector<std::string>& hosts, const HostCheck& how) {
  constexpr std::chrono::minutes most(10);
  const std::vector<std::string> without = hosts_without_program(hosts, how);
  if (without.empty()) return without;
  std::vector<std::string> archive = {"tar", "-C", "/", "-cf", "-", "--"};
  for (const std::string& path : installation_of(how.program))
    archive.push_back(std::filesystem::path(path).relative_path());
  std::string problems;
  for (const RemoteAnswer& answer :
       run_on_hosts(how.agent, without, "tar -C / --no-same-owner -xf -", most, shell_line(archive))) {
    if (!answer.good()) problems += format("{}{}: {}", problems.empty() ? "" : "; ", answer.host, answer.why(most));
  }
  if (problems.empty()) return without;
  throw Error(ErrorKind::peer, format("trainctl could not be sent to all hosts: {}", problems),
              format("let {} be written there, or install it where it can be",
                     std::filesystem::path(how.program).parent_path().string()));
}
}  // namespace trainctl
