// Draws the bar on the terminal, and updates it at events of the run.
#include "io/metrics/progress.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <mutex>
#include <utility>

#include "core/base/log.h"
#include "io/metrics/terminal.h"

namespace trainctl {
namespace {

constexpr double redraw_seconds = 0.1;

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

ProgressStyle resolved(ProgressStyle style, std::optional<int> columns) {
  if (style != ProgressStyle::automatic) return style;
  const bool capable = (columns || isatty(STDERR_FILENO)) && terminal_redraws();
  return capable ? ProgressStyle::bar : ProgressStyle::plain;
}

}  // namespace

struct ProgressBar::Shared {
  int terminal = STDERR_FILENO;
  std::optional<int> columns;
  std::mutex mutex;  // since any thread may write log lines
  std::string line;  // the bar that is on the terminal

  ~Shared() {
    if (terminal > STDERR_FILENO) close(terminal);
  }
  int width() const {
    const int now = terminal_columns(terminal);
    return now > 0 ? now : columns.value_or(80);
  }
  void erase() const {
    if (!line.empty()) std::fputs("\r\x1b[K", stderr);
  }
  void show() const {
    if (!line.empty()) std::fprintf(stderr, "\r%s\x1b[K", line.c_str());
    std::fflush(stderr);
  }
};

ProgressBar::ProgressBar(const SupervisedTerminal& terminal) : shared_(std::make_unique<Shared>()) {
  shared_->columns = terminal.columns;
  if (!terminal.path.empty()) shared_->terminal = open(terminal.path.c_str(), O_RDONLY | O_NOCTTY | O_CLOEXEC);
  Shared* shared = shared_.get();
  log::set_terminal_hooks(
      [shared] {
        shared->mutex.lock();
        shared->erase();
      },
      [shared] {
        shared->show();
        shared->mutex.unlock();
      });
}

ProgressBar::~ProgressBar() {
  log::set_terminal_hooks({}, {});
  clear();
}

void ProgressBar::draw(const ProgressState& state) {
  std::string line = bar_line(state, shared_->width() - 1);  // a full line would wrap
  const std::lock_guard lock(shared_->mutex);
  shared_->line = std::move(line);
  shared_->show();
}

void ProgressBar::clear() {
  const std::lock_guard lock(shared_->mutex);
  shared_->erase();
  shared_->line.clear();
  std::fflush(stderr);
}

Progress::Progress(ProgressStyle style, Duration every, const SupervisedTerminal& terminal)
    : style_(resolved(style, terminal.columns)), due_(every) {
  if (style_ == ProgressStyle::bar) bar_ = std::make_unique<ProgressBar>(terminal);
}

Progress::~Progress() = default;

void Progress::start(const StartEvent& event) {
  start_ = event;
  last_line_ = now_seconds();
}

void Progress::step(const StepEvent& event) {
  for (Sums* sums : {&run_, &line_}) {
    if (event.samples_per_second <= 0) continue;
    ++sums->steps;
    sums->inverse_rate += 1 / event.samples_per_second;
    sums->wait += event.data_wait_share;
  }
  const double now = now_seconds();
  if (style_ == ProgressStyle::plain && due_(event, now) && rate_(now)) {
    log::info(step_line(state_since_last_line(event, now)));
  }
  if (bar_ && now - last_line_ >= redraw_seconds) bar_->draw(state_since_last_line(event, now));
}

ProgressState Progress::state_since_last_line(const StepEvent& event, double now) {
  ProgressState state;
  state.step = event.step;
  state.total_steps = start_.total_steps;
  state.steps_per_epoch = start_.steps_per_epoch;
  state.epoch = event.epoch;
  state.loss = event.loss;
  state.learning_rate = event.learning_rate;
  if (line_.steps > 0) {
    constexpr double newest = 0.2;  // weight of the newest interval
    const double per_step = (now - last_line_) / static_cast<double>(line_.steps);
    seconds_per_step_ = seconds_per_step_ > 0 ? (1 - newest) * seconds_per_step_ + newest * per_step : per_step;
    state.samples_per_second = line_.rate();
    state.data_wait_share = line_.wait / static_cast<double>(line_.steps);
  }
  if (start_.total_steps > 0 && seconds_per_step_ > 0) {
    state.seconds_left = static_cast<double>(start_.total_steps - event.step) * seconds_per_step_;
  }
  set_gpus(state, event.gpus);
  line_ = {};
  last_line_ = now;
  return state;
}

void Progress::epoch(const EpochEvent& event) {
  const std::int64_t epochs = epoch_count(start_.total_steps, start_.steps_per_epoch);
  if (style_ != ProgressStyle::none) log::info(epoch_line(event, epochs));
  last_line_ = now_seconds();  // the time of an evaluation does not count for steps
  line_ = {};
}

void Progress::checkpoint(const CheckpointEvent& event) { last_checkpoint_ = event.path; }

void Progress::end(const EndEvent& event) {
  if (bar_) bar_->clear();
  for (const std::string& line : summary_lines(event, run_.rate(), last_checkpoint_)) log::info(line);
  for (const std::string& line : device_lines(start_, event, run_.rate())) log::info(line);
}

}  // namespace trainctl
