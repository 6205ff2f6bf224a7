// Logging by spdlog: a sink for the terminal, which calls the hooks of a progress bar, and a sink for files.
#include "core/base/log.h"

#include <fcntl.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/output.h"
#include "core/base/terminal_text.h"

namespace trainctl::log {
namespace {

// Writes whole lines to standard error, and calls the hooks of a progress bar before and after each line.
class TerminalSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  void set_hooks(std::function<void()> before, std::function<void()> after) {
    const std::lock_guard lock(mutex_);
    before_ = std::move(before);
    after_ = std::move(after);
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    const std::string text = terminal_text({line.data(), line.size()});
    if (before_) before_();
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
    if (after_) after_();
  }
  void flush_() override { std::fflush(stderr); }

 private:
  std::function<void()> before_, after_;
};

std::string error_text(int error) { return std::generic_category().message(error); }

// Appends each line with one write, so that lines of several processes do not mix.
class FileSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  FileSink(const std::string& path, std::shared_ptr<TerminalSink> terminal)
      : path_(path),
        terminal_(std::move(terminal)),
        descriptor_(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC, 0666)) {
    struct stat status {};
    const int error = descriptor_ >= 0 && fstat(descriptor_, &status) == 0 ? 0 : errno;
    if (error == 0 && S_ISREG(status.st_mode)) return;
    if (descriptor_ >= 0) close(descriptor_);
    throw Error(ErrorKind::resource, SourceLocation{path},
                error == 0 || error == ENXIO ? "is not a regular file" : "cannot write: " + error_text(error),
                "choose a run directory that can be written (--run-dir)");
  }
  ~FileSink() override { close(descriptor_); }
  FileSink(const FileSink&) = delete;
  FileSink& operator=(const FileSink&) = delete;

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    // Control characters are escaped here too, because users show the file on a terminal.
    std::string text = terminal_text({line.data(), line.size()});
    if (missing_ > 0) {  // the line break ends a line that was written in part
      text = format("\n({} missing here: the file could not be written)\n{}",
                    missing_ == 1 ? "1 line is" : format("{} lines are", missing_), text);
    }
    const int error = write_all(descriptor_, text);
    if (error == 0) {
      missing_ = 0;
      return;
    }
    if (++missing_ > 1) return;
    const std::string warning = format("{}: cannot write: {}; lines are missing in this file until it can be written",
                                       path_, error_text(error));
    terminal_->log({message.logger_name, spdlog::level::warn, spdlog::string_view_t(warning.data(), warning.size())});
  }
  void flush_() override {}

 private:
  std::string path_;
  std::shared_ptr<TerminalSink> terminal_;
  int descriptor_;
  std::int64_t missing_ = 0;  // number of lines that could not be written since the last line of the file
};

struct Logger {
  std::shared_ptr<TerminalSink> terminal = std::make_shared<TerminalSink>();
  std::shared_ptr<spdlog::logger> logger = std::make_shared<spdlog::logger>("trainctl", terminal);
  std::string prefix;

  Logger() {
    logger->set_level(spdlog::level::trace);
    apply_pattern();
    terminal->set_level(spdlog::level::info);
  }
  std::string line_prefix() const { return prefix.empty() ? "" : "[" + prefix + "] "; }
  void apply_pattern() { terminal->set_pattern(line_prefix() + "%v"); }
};

// The only global object: a process has one terminal.
Logger& logger() {
  static Logger instance;
  return instance;
}

spdlog::level::level_enum spdlog_level(Level level) {
  switch (level) {
    case Level::debug:
      return spdlog::level::debug;
    case Level::info:
      return spdlog::level::info;
    case Level::warning:
      return spdlog::level::warn;
    case Level::error:
      return spdlog::level::err;
    case Level::off:
      return spdlog::level::off;
  }
  return spdlog::level::info;
}

void write(spdlog::level::level_enum level, std::string_view line) {
  logger().logger->log(level, spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace

void set_level(Level level) { logger().terminal->set_level(spdlog_level(level)); }

void set_prefix(std::string_view prefix) {
  logger().prefix = prefix;
  logger().apply_pattern();
}

void add_file(const std::string& path, Level level) {
  auto sink = std::make_shared<FileSink>(path, logger().terminal);
  sink->set_level(spdlog_level(level));
  sink->set_pattern("%Y-%m-%d %H:%M:%S.%e %L " + logger().line_prefix() + "%v");
  logger().logger->sinks().push_back(std::move(sink));
}

void debug(std::string_view line) { write(spdlog::level::debug, line); }
void info(std::string_view line) { write(spdlog::level::info, line); }
void warning(std::string_view line) { write(spdlog::level::warn, line); }
void error(std::string_view line) { write(spdlog::level::err, line); }

void set_terminal_hooks(std::function<void()> before, std::function<void()> after) {
  logger().terminal->set_hooks(std::move(before), std::move(after));
}

}  // namespace trainctl::log
