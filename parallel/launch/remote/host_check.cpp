// A shell on each host tells the program's SHA-256, the room for temporary files and the time.
#include "parallel/launch/remote/host_check.h"

#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/hash.h"
#include "parallel/launch/remote/shell.h"
#include "parallel/launch/shell_words.h"

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

// What a host says of the program, of its folder for temporary files, and of its clock.
struct HostFacts {
  Holds program = Holds::unknown;
  std::optional<std::int64_t> bytes_left;  // in the file system of that folder,
  std::string mounted_at;                  // which lies here
  std::int64_t seconds_ahead = 0;          // as far as the time that the answer took can tell
};

HostFacts facts_of(const RemoteAnswer& answer, const std::string& hash) {
  HostFacts facts;
  if (!answer.good()) return facts;
  std::istringstream lines(answer.output);
  std::string program, space, seconds;
  std::getline(lines, program);
  for (std::string line; std::getline(lines, line); seconds = line) space = seconds;
  if (seconds.empty()) return facts;
  const std::string first = program.substr(0, program.find(' '));
  facts.program = first == hash                 ? Holds::same
                  : first == "missing"          ? Holds::nothing
                  : first.size() == hash.size() ? Holds::other
                                                : Holds::unknown;
  std::istringstream words(space);  // of df -P: file system, size, used and left in KiB, share, where it is mounted
  std::string skipped;
  std::int64_t left = 0;
  if (words >> skipped >> skipped >> skipped >> left >> skipped >> facts.mounted_at) facts.bytes_left = left * 1024;
  const std::int64_t there = std::strtoll(seconds.c_str(), nullptr, 10);
  facts.seconds_ahead = there > answer.end ? there - answer.end : there < answer.begin ? there - answer.begin : 0;
  return facts;
}

// What is wrong with the host; "" where nothing is.
std::string problem_of(const RemoteAnswer& answer, const HostFacts& facts, const HostCheck& how) {
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

std::vector<RemoteAnswer> ask(const std::vector<std::string>& hosts, const HostCheck& how) {
  const std::string path = shell_word(how.program);
  return run_on_hosts(how.agent, hosts,
                      format("if [ -f {0} ]; then sha256sum < {0}; else echo missing; fi; "
                             "df -Pk \"${{TMPDIR:-/tmp}}\" 2>/dev/null | tail -n 1; date +%s",
                             path),
                      how.deadline);
}

}  // namespace

std::vector<std::string> check_hosts(const std::vector<std::string>& hosts, const HostCheck& how) {
  const std::string hash = hash_of(how.program);
  std::string problems;
  std::vector<std::string> warnings;
  int bad = 0;
  for (const RemoteAnswer& answer : ask(hosts, how)) {
    const HostFacts facts = facts_of(answer, hash);
    if (const std::string problem = problem_of(answer, facts, how); !problem.empty()) {
      problems += format("{}{}: {}", bad++ == 0 ? "" : "; ", answer.host, problem);
    } else if (const std::int64_t ahead = facts.seconds_ahead; std::abs(ahead) > 5) {
      warnings.push_back(format("the clock of {} is {} s {} this host's", answer.host, std::abs(ahead),
                                ahead > 0 ? "ahead of" : "behind"));
    }
  }
  if (bad == 0) return warnings;
  throw Error(ErrorKind::peer, format("{} of the {} other hosts cannot take part: {}", bad, hosts.size(), problems),
              format("each must answer `{} HOST true` without a password, and hold the same trainctl at the same place "
                     "(--sync sends it there)",
                     how.agent.front()));
}

std::vector<std::string> hosts_without_program(const std::vector<std::string>& hosts, const HostCheck& how) {
  const std::string hash = hash_of(how.program);
  std::vector<std::string> without;
  for (const RemoteAnswer& answer : ask(hosts, how)) {
    const Holds program = facts_of(answer, hash).program;
    if (program == Holds::other || program == Holds::nothing) without.push_back(answer.host);
  }
  return without;
}

}  // namespace trainctl
