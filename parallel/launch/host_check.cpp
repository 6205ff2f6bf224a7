// A shell on each host tells the program's SHA-256 and the time.
#include "parallel/launch/host_check.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <memory>
#include <sstream>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/hash.h"
#include "parallel/launch/process.h"
#include "parallel/launch/shell_words.h"

namespace trainctl {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::string hash_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> buffer(1 << 20);
  Sha256 hash;
  while (file.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || file.gcount() > 0) {
    hash.update(buffer.data(), static_cast<std::size_t>(file.gcount()));
  }
  return hash.finish();
}

// One host's shell, from its start to its end.
class Asked {
 public:
  Asked(std::string host, const std::vector<std::string>& command)
      : host_(std::move(host)), begin_(std::time(nullptr)), process_(start_process(command, {})) {
    for (const int pipe : pipes()) fcntl(pipe, F_SETFL, O_NONBLOCK);
  }
  ~Asked() {
    kill(-process_.pid, SIGKILL);
    if (!ended_) waitpid(process_.pid, nullptr, 0);
    for (const int pipe : pipes()) close(pipe);
  }
  Asked(const Asked&) = delete;
  Asked& operator=(const Asked&) = delete;

  // Takes what has come; false while the shell runs.
  bool ended() {
    read_all();
    if (ended_ || waitpid(process_.pid, &status_, WNOHANG) != process_.pid) return ended_;
    read_all();
    end_ = std::time(nullptr);
    return ended_ = true;
  }

  // What is wrong with the host; "" where nothing is.
  std::string problem(const std::string& program, const std::string& hash, std::chrono::milliseconds deadline) const {
    if (!ended_) return format("no answer within {} s", (deadline.count() + 500) / 1000);
    if (WIFEXITED(status_) && WEXITSTATUS(status_) == 0) {
      const std::vector<std::string> words = words_of(texts_[0]);
      if (!words.empty() && words[0] == "missing") return format("there is no {}", program);
      if (words.size() >= 3 && words[0] == hash) return "";
      if (words.size() >= 3 && words[0].size() == hash.size())
        return format("its {} is another one than here", program);
    }
    return why();
  }

  // By how many seconds the host's clock is ahead, as far as the time that the answer took can tell.
  std::int64_t seconds_ahead() const {
    const std::vector<std::string> words = words_of(texts_[0]);
    if (words.empty()) return 0;
    const std::int64_t there = std::strtoll(words.back().c_str(), nullptr, 10);
    return there > end_ ? there - end_ : there < begin_ ? there - begin_ : 0;
  }

  const std::string& host() const { return host_; }

 private:
  std::array<int, 3> pipes() const { return {process_.output, process_.errors, process_.messages}; }

  void read_all() {
    std::array<char, 4096> buffer{};
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      ssize_t count = 0;
      while ((count = read(pipes()[i], buffer.data(), buffer.size())) > 0) {
        texts_[i].append(buffer.data(), static_cast<std::size_t>(count));
      }
    }
  }

  // The last line that the shell, or the agent, had to say.
  std::string why() const {
    std::string last;
    std::istringstream lines(texts_[1]);
    for (std::string line; std::getline(lines, line);) {
      if (line.find_first_not_of(" \r\t") != std::string::npos) last = one_line(line);
    }
    while (!last.empty() && last.back() == ' ') last.pop_back();
    if (!last.empty()) return last;
    return WIFEXITED(status_) ? format("its shell ended with exit code {}", WEXITSTATUS(status_))
                              : "its shell was killed";
  }

  std::string host_;
  std::time_t begin_, end_ = 0;
  ChildProcess process_;
  std::array<std::string, 3> texts_;
  int status_ = 0;
  bool ended_ = false;
};

}  // namespace

std::vector<std::string> shell_agent(const Variables& variables) {
  std::string agents = variables.text("OMPI_MCA_plm_rsh_agent");
  if (agents.empty()) agents = "ssh";
  std::istringstream stream(agents);
  for (std::string agent; std::getline(stream, agent, ':');) {
    std::vector<std::string> words = words_of(agent);
    const std::string program = words.empty() ? "" : find_program(words[0]);
    if (program.empty()) continue;
    words[0] = program;
    if (program.ends_with("/ssh")) {
      // Neither a window system nor questions that nobody sees.
      words.insert(words.end(), {"-x", "-o", "BatchMode=yes"});
    }
    const std::vector<std::string> more = words_of(variables.text("OMPI_MCA_plm_rsh_args"));
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  return {};
}

std::vector<std::string> check_hosts(const std::vector<std::string>& hosts, const HostCheck& how) {
  const std::string path = shell_word(how.program);
  const std::string script = format("if [ -f {0} ]; then sha256sum < {0}; else echo missing; fi; date +%s", path);
  const auto until = Clock::now() + how.deadline;
  std::vector<std::unique_ptr<Asked>> asked;
  for (const std::string& host : hosts) {
    std::vector<std::string> command = how.agent;
    command.insert(command.end(), {host, "sh -c " + shell_word(script)});
    asked.push_back(std::make_unique<Asked>(host, command));
  }
  const std::string hash = hash_of(how.program);
  const auto runs = [](const std::unique_ptr<Asked>& one) { return !one->ended(); };
  while (std::count_if(asked.begin(), asked.end(), runs) > 0 && Clock::now() < until) poll(nullptr, 0, 10);

  std::string problems;
  std::vector<std::string> warnings;
  int bad = 0;
  for (const auto& one : asked) {
    if (const std::string problem = one->problem(how.program, hash, how.deadline); !problem.empty()) {
      problems += format("{}{}: {}", bad++ == 0 ? "" : "; ", one->host(), problem);
    } else if (const std::int64_t ahead = one->seconds_ahead(); std::abs(ahead) > 5) {
      warnings.push_back(format("the clock of {} is {} s {} this host's", one->host(), std::abs(ahead),
                                ahead > 0 ? "ahead of" : "behind"));
    }
  }
  if (bad == 0) return warnings;
  throw Error(ErrorKind::peer, format("{} of the {} other hosts cannot take part: {}", bad, hosts.size(), problems),
              format("each must answer `{} HOST true` without a password, and hold the same trainctl at the same place",
                     how.agent.front()));
}

}  // namespace trainctl
