// Runs commands in the background, one after another; they end with the program at the latest.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace trainctl {

class GroupGuard;

class CommandQueue {
 public:
  struct Command {
    std::string text;                                // command for /bin/sh
    std::map<std::string, std::string> environment;  // added to this process's environment
    double timeout = 0;                              // seconds
  };

  // The output of commands is appended to the log file.
  explicit CommandQueue(std::string log_file);
  // Waits for the remaining commands; the total wait is at most the longest of their timeouts. Commands that have not
  // run by then are dropped with a warning.
  ~CommandQueue();
  CommandQueue(const CommandQueue&) = delete;
  CommandQueue& operator=(const CommandQueue&) = delete;

  // Runs the command once the earlier ones have ended. Logs a warning if it fails or is killed at its timeout.
  void add(Command command);

 private:
  using Clock = std::chrono::steady_clock;

  void work();
  // Runs a command and returns the reason of its failure, "" if it succeeded.
  std::string run(const Command& command);
  // Waits for the process of a command, and returns the reason of its failure like run().
  std::string wait(pid_t process, const Command& command);
  Clock::time_point end_of_all();

  std::string log_file_;
  std::unique_ptr<GroupGuard> guard_;  // guards the running command
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Command> commands_;
  double longest_timeout_ = 0;  // longest timeout of all commands so far
  Clock::time_point end_;       // when all commands must have ended, once `ends_` is set
  bool ends_ = false;
  std::thread worker_;  // the last member, since it uses the others
};

}  // namespace trainctl
