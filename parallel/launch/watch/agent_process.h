// The supervisor's end of the channel to the agent of one host.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "parallel/launch/host/process.h"
#include "parallel/launch/watch/messages.h"

namespace trainctl {

class AgentProcess {
 public:
  // `command`: starts the agent with this mark, on this host or through a remote shell. Starts nothing yet.
  AgentProcess(std::string host, std::vector<std::string> command, std::string mark);
  ~AgentProcess();  // kills the process
  AgentProcess(const AgentProcess&) = delete;
  AgentProcess& operator=(const AgentProcess&) = delete;

  // Starts the process. Throws Error{resource}.
  void start(double now);

  // Passes each message of the agent to `take`. A process that has ended without a request is started again after some
  // seconds, a few times: the ranks on its host go on.
  void read(double now, const std::function<void(const WatchNews&)>& take);

  // Sends a request, unless the channel is closed or full. Never waits. Any thread may call it.
  void send(WatchRequest::Kind kind) const;

  // Closes the channel; the process ends itself.
  void close_input();

  const std::string& host() const { return host_; }
  bool runs() const { return process_.pid > 0; }
  bool has_given_up() const { return starts_ >= most_starts && !runs(); }
  bool answers() const { return greeted_; }  // whether the agent has said hello since it was started
  // Warns once if the agent has run for long and has sent nothing.
  void warn_if_mute(double now);
  double heard() const { return heard_; }  // time of the last message; 0 if there was none
  void forgive(double now) { heard_ = heard_ > 0 ? now : heard_; }
  pid_t process() const { return process_.pid; }
  void add_sources(std::vector<pollfd>& sources) const;

 private:
  static constexpr int most_starts = 4;  // without a healthy minute between them

  void start_again(double now);
  void end();

  std::string host_;
  std::vector<std::string> command_;
  std::string mark_;
  ChildProcess process_;
  mutable std::mutex input_mutex_;  // for process_.input, which send() uses
  LineReader lines_;
  std::string errors_;  // the end of what it wrote to standard error
  bool greeted_ = false, refused_ = false;
  bool asked_to_end_ = false, warned_ = false;
  double heard_ = 0, next_start_ = 0, started_ = 0;
  int starts_ = 0;
};

}  // namespace trainctl
