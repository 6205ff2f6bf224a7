// Starts an agent, writes its standard input and reads its standard output.
#include "parallel/launch/watch/agent_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/base/terminal_text.h"

namespace trainctl {
namespace {

constexpr double pause_before_start = 3;  // seconds
constexpr std::size_t kept_errors = 4096;

// Reads what is there, at most the capacity of a pipe. Returns false once the other side has closed the pipe.
bool read_available(int descriptor, const std::function<void(std::string_view)>& take) {
  constexpr int most_pieces = 16;
  std::array<char, 65536> buffer{};
  ssize_t count = -1;
  for (int piece = 0; piece < most_pieces; ++piece) {
    count = read(descriptor, buffer.data(), buffer.size());
    if (count <= 0) break;
    take({buffer.data(), static_cast<std::size_t>(count)});
  }
  return count != 0;
}

}  // namespace

AgentProcess::AgentProcess(std::string host, std::vector<std::string> command, std::string mark)
    : host_(std::move(host)), command_(std::move(command)), mark_(std::move(mark)) {}

AgentProcess::~AgentProcess() { end(); }

void AgentProcess::start(double now) {
  ++starts_;
  started_ = now;
  next_start_ = now + pause_before_start;
  const ChildProcess process = start_process(command_, {}, Input::pipe);
  for (const int pipe : {process.input, process.output, process.errors, process.messages}) {
    fcntl(pipe, F_SETFL, O_NONBLOCK);
  }
  const std::lock_guard lock(input_mutex_);
  process_ = process;
  lines_ = {};
  greeted_ = false;
}

// Another function of this process may already have waited for the child, which then no longer exists.
void AgentProcess::end() {
  if (!runs()) return;
  if (kill(-process_.pid, SIGKILL) == 0) waitpid(process_.pid, nullptr, 0);
  const std::lock_guard lock(input_mutex_);
  for (const int pipe : {process_.input, process_.output, process_.errors, process_.messages}) {
    if (pipe >= 0) close(pipe);
  }
  process_ = {};
}

void AgentProcess::start_again(double now) {
  if (starts_ == 0 || starts_ >= most_starts || now < next_start_ || asked_to_end_ || refused_) return;
  try {
    start(now);
  } catch (const Error& error) {
    log::debug(format("the agent on {} was not started again: {}", host_, error.what()));
  }
}

void AgentProcess::read(double now, const std::function<void(const WatchNews&)>& take) {
  if (!runs()) return start_again(now);
  const auto take_line = [&](const std::string& line) {
    const std::optional<WatchNews> news = read_news(line, mark_);
    if (!news) return;
    if (news->kind == WatchNews::Kind::hello) {
      refused_ = news->version != watch_version;
      greeted_ = !refused_;
      if (refused_) log::warning(format("the ranks on {} are not watched: another trainctl is installed there", host_));
    }
    if (!greeted_) return;
    heard_ = now;
    constexpr double healthy = 60;  // seconds after which earlier failures no longer count
    if (now - next_start_ > healthy) starts_ = 1;
    take(*news);
  };
  if (process_.errors >= 0 &&
      !read_available(process_.errors, [&](std::string_view text) { append_within(errors_, text, kept_errors); })) {
    close(std::exchange(process_.errors, -1));
  }
  read_available(process_.messages, [](std::string_view) {});
  const bool open = read_available(process_.output, [&](std::string_view bytes) {
    for (const std::string& line : lines_.add(bytes)) take_line(line);
  });
  if (open) return;
  if (!asked_to_end_) {
    const auto tell = starts_ >= most_starts ? log::warning : log::debug;
    tell(format("the agent on {} has ended, so that its ranks are not watched: {}", host_, terminal_text(errors_)));
  }
  end();
  next_start_ = now + pause_before_start;
}

void AgentProcess::warn_if_mute(double now) {
  constexpr double long_time = 30;  // seconds
  if (!runs() || greeted_ || refused_ || warned_ || now - started_ < long_time) return;
  warned_ = true;
  log::warning(
      format("the ranks on {} are not watched, so that no rank is found to hang: the agent there was started "
             "and has sent nothing for {:g} s; its remote shell may wait for an answer",
             host_, long_time));
}

void AgentProcess::send(WatchRequest::Kind kind) const {
  const std::string line = to_line({kind});
  const std::lock_guard lock(input_mutex_);
  if (process_.input < 0) return;
  [[maybe_unused]] const ssize_t written = write(process_.input, line.data(), line.size());
}

void AgentProcess::close_input() {
  asked_to_end_ = true;
  const std::lock_guard lock(input_mutex_);
  if (process_.input >= 0) close(std::exchange(process_.input, -1));
}

void AgentProcess::add_sources(std::vector<pollfd>& sources) const {
  if (!runs()) return;
  for (const int pipe : {process_.output, process_.errors}) sources.push_back({pipe, POLLIN, 0});  // poll ignores -1
}

}  // namespace trainctl
