// Reads files with system calls, since streams do not distinguish an error from the end of a file.
#include "io/yaml/text.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "core/base/format.h"

namespace trainctl {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

// How long to wait for a pipe: until a process opens it for writing, and until data arrives.
constexpr std::chrono::seconds max_without_writer(5), max_between_writes(30);

// Waits until a pipe can be read. Returns an error text, or "" if there is data or the end of data. `written` tells
// whether data has arrived before.
std::string wait_for_text(int descriptor, bool has_writer, bool written) {
  const std::chrono::milliseconds limit = has_writer ? max_between_writes : max_without_writer;
  pollfd source{descriptor, POLLIN, 0};
  if (poll(&source, 1, static_cast<int>(limit.count())) != 0) return "";  // also after a signal: the caller reads again
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit).count();
  if (!has_writer) return format("is a pipe to which no process has written within {} s", seconds);
  return format("is a pipe whose writer has written no {}data for {} s", written ? "more " : "", seconds);
}

}  // namespace

std::optional<std::string> read_text(const std::string& file, FileKind kind, const SourceLocation& location,
                                     const std::string& what, Reader& reader) {
  const auto fail = [&](const std::string& message) {
    reader.error(location, what + " " + message);
    return std::nullopt;
  };
  const auto cannot = [&] { return fail(std::string("cannot be read: ") + std::strerror(errno)); };
  // The kind of file is checked before it is opened, since opening a device may change it.
  struct stat status {};
  if (stat(file.c_str(), &status) != 0) return cannot();
  if (S_ISDIR(status.st_mode)) return fail("is a folder");
  if (kind == FileKind::regular && !S_ISREG(status.st_mode)) return fail("is not a regular file");
  const bool is_pipe = S_ISFIFO(status.st_mode);
  const Descriptor descriptor(
      // Only a pipe is opened with O_NONBLOCK: reading from a terminal may block.
      open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | (is_pipe ? O_NONBLOCK : 0)));
  if (descriptor.number() < 0) return cannot();
  // The writer of a named pipe may open it later; an inherited pipe, such as standard input, has its writer from the
  // start.
  bool awaits_writer = is_pipe && !file.starts_with("/dev/") && !file.starts_with("/proc/");
  std::string text;
  constexpr std::size_t piece = 1 << 16;
  while (text.size() <= ConfigLimits::bytes) {
    const std::size_t size = text.size();
    text.resize(size + piece);
    const ssize_t count = read(descriptor.number(), text.data() + size, piece);
    text.resize(size + static_cast<std::size_t>(count < 0 ? 0 : count));
    if (count < 0 && errno != EINTR && errno != EAGAIN) return cannot();
    if (count == 0 && (!awaits_writer || size > 0)) return text;
    const bool no_data_yet = count < 0 && errno == EAGAIN;
    if (no_data_yet || count == 0) {
      const std::string problem = wait_for_text(descriptor.number(), no_data_yet, size > 0);
      if (!problem.empty()) return fail(problem + "; write the config to a file");
      awaits_writer = awaits_writer && no_data_yet;  // a writer has opened the pipe, and may have closed it again
    }
  }
  return fail(format("is larger than {} MB", ConfigLimits::bytes / 1'000'000));
}

}  // namespace trainctl
