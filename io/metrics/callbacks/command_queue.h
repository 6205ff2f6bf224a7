// Commands that run beside the program, one after another, and end with it.
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
    std::string text;                                // for /bin/sh
    std::map<std::string, std::string> environment;  // beside this process's
    double timeout = 0;                              // seconds
  };

  // What commands write is appended to the log file.
  explicit CommandQueue(std::string log_file);
  // Waits for the commands, all together no longer than the longest of their timeouts; what has not run then is left
  // out, which is warned of.
  ~CommandQueue();
  CommandQueue(const CommandQueue&) = delete;
  CommandQueue& operator=(const CommandQueue&) = delete;

  // Runs the command once those before have ended. One that fails, or that its timeout ends, is warned of.
  void add(Command command);

 private:
  using Clock = std::chrono::steady_clock;

  void work();
  // Why a command has failed; "" where it has not.
  std::string run(const Command& command);
  // The same of one that runs as this process.
  std::string wait(pid_t process, const Command& command);
  Clock::time_point last_moment();

  std::string log_file_;
  std::unique_ptr<GroupGuard> guard_;  // of the command that runs
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Command> commands_;
  double longest_ = 0;     // timeout of a command so far
  Clock::time_point end_;  // when nothing runs any more
  bool ends_ = false;
  std::thread worker_;  // last: it uses the others
};

}  // namespace trainctl
