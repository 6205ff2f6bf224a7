// Starts a remote shell for each host and reads its output until it ends.
#include "parallel/launch/remote/shell.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <memory>
#include <sstream>

#include "core/base/format.h"
#include "core/base/shell_words.h"
#include "parallel/launch/host/process.h"

namespace trainctl {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// The remote shell of one host, from its start to its end.
class RemoteShell {
 public:
  RemoteShell(const std::string& host, const std::vector<std::string>& command)
      : answer_{.host = host, .begin = std::time(nullptr)}, process_(start_process(command, {})) {
    for (const int pipe : pipes()) fcntl(pipe, F_SETFL, O_NONBLOCK);
  }
  ~RemoteShell() {
    kill(-process_.pid, SIGKILL);
    if (!answer_.ended) waitpid(process_.pid, nullptr, 0);
    for (const int pipe : pipes()) close(pipe);
  }
  RemoteShell(const RemoteShell&) = delete;
  RemoteShell& operator=(const RemoteShell&) = delete;

  // Reads the available output; returns false while the shell runs.
  bool ended() {
    read_all();
    if (answer_.ended || waitpid(process_.pid, &answer_.status, WNOHANG) != process_.pid) return answer_.ended;
    read_all();
    answer_.end = std::time(nullptr);
    return answer_.ended = true;
  }
  const RemoteAnswer& answer() const { return answer_; }

 private:
  std::array<int, 3> pipes() const { return {process_.output, process_.errors, process_.messages}; }

  // Reads at most the capacity of a pipe in one call, so that a host that prints without end cannot delay the deadline.
  void read_all() {
    constexpr int max_pieces = 16;
    std::string messages;
    const std::array<std::string*, 3> texts = {&answer_.output, &answer_.errors, &messages};
    std::array<char, 4096> buffer{};
    for (std::size_t i = 0; i < texts.size(); ++i) {
      for (int piece = 0; piece < max_pieces; ++piece) {
        const ssize_t count = read(pipes()[i], buffer.data(), buffer.size());
        if (count <= 0) break;
        append_within(*texts[i], {buffer.data(), static_cast<std::size_t>(count)}, max_remote_text);
      }
    }
  }

  RemoteAnswer answer_;
  ChildProcess process_;
};

}  // namespace

std::vector<std::string> shell_agent(const Variables& variables, MpiLibrary mpi) {
  const bool five = mpi == MpiLibrary::openmpi5;
  std::string agents = variables.text(mpi == MpiLibrary::mpich ? "HYDRA_LAUNCHER_EXEC"
                                      : five                   ? "PRTE_MCA_plm_ssh_agent"
                                                               : "OMPI_MCA_plm_rsh_agent");
  if (agents.empty()) agents = "ssh";
  std::istringstream stream(agents);
  for (std::string agent; std::getline(stream, agent, ':');) {
    std::vector<std::string> words = words_of(agent);
    const std::string program = words.empty() ? "" : find_program(words[0]);
    if (program.empty()) continue;
    words[0] = program;
    if (program.ends_with("/ssh")) {
      // Without X11 forwarding and interactive questions.
      words.insert(words.end(), {"-x", "-o", "BatchMode=yes"});
    }
    const std::vector<std::string> more =
        words_of(variables.text(five ? "PRTE_MCA_plm_ssh_args" : "OMPI_MCA_plm_rsh_args"));
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  return {};
}

bool RemoteAnswer::good() const { return ended && WIFEXITED(status) && WEXITSTATUS(status) == 0; }

std::string RemoteAnswer::why(std::chrono::milliseconds deadline) const {
  if (!ended) return format("no answer within {} s", (deadline.count() + 500) / 1000);
  std::string last;
  std::istringstream lines(errors);
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of(" \r\t") != std::string::npos) last = one_line(line);
  }
  while (!last.empty() && last.back() == ' ') last.pop_back();
  if (!last.empty()) return last;
  return WIFEXITED(status) ? format("its shell ended with exit code {}", WEXITSTATUS(status)) : "its shell was killed";
}

std::vector<RemoteAnswer> run_on_hosts(const std::vector<std::string>& agent, const std::vector<std::string>& hosts,
                                       const std::string& script, std::chrono::milliseconds deadline,
                                       const std::string& input) {
  const auto until = Clock::now() + deadline;
  std::vector<std::unique_ptr<RemoteShell>> shells;
  for (const std::string& host : hosts) {
    std::vector<std::string> command = agent;
    command.insert(command.end(), {host, "sh -c " + shell_word(script)});
    if (!input.empty()) command = {"/bin/sh", "-c", format("{} | {}", input, shell_line(command))};
    shells.push_back(std::make_unique<RemoteShell>(host, command));
  }
  const auto runs = [](const std::unique_ptr<RemoteShell>& shell) { return !shell->ended(); };
  while (std::count_if(shells.begin(), shells.end(), runs) > 0 && Clock::now() < until) poll(nullptr, 0, 10);
  std::vector<RemoteAnswer> answers;
  for (const auto& shell : shells) answers.push_back(shell->answer());
  return answers;
}

}  // namespace trainctl
