// Reading by system calls, since streams do not tell an error from the end.
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

// How long a reader waits for a pipe: for somebody who writes, and for what is written.
constexpr std::chrono::seconds longest_without_writer(5), longest_silence(30);

// Waits until a pipe can be read. Returns what is wrong with it, "" once there is something to read or
// nothing more will come. `written`: whether anything has come so far.
std::string wait_for_text(int descriptor, bool has_writer, bool written) {
  const std::chrono::milliseconds limit = has_writer ? longest_silence : longest_without_writer;
  pollfd source{descriptor, POLLIN, 0};
  if (poll(&source, 1, static_cast<int>(limit.count())) != 0) return "";  // a signal counts as well: it is read again
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit).count();
  if (!has_writer) return format("is a pipe, and nobody has written to it within {} s", seconds);
  return format("is a pipe whose writer has written nothing {}for {} s", written ? "more " : "", seconds);
}

}  // namespace

std::optional<std::string> read_text(const std::string& file, FileKind kind, const SourceLocation& location,
                                     const std::string& what, Reader& reader) {
  const auto fail = [&](const std::string& message) {
    reader.error(location, what + " " + message);
    return std::nullopt;
  };
  const auto cannot = [&] { return fail(std::string("cannot be read: ") + std::strerror(errno)); };
  // Looked at before it is opened, since opening a device may change it.
  struct stat facts {};
  if (stat(file.c_str(), &facts) != 0) return cannot();
  if (S_ISDIR(facts.st_mode)) return fail("is a folder");
  if (kind == FileKind::regular && !S_ISREG(facts.st_mode)) return fail("is no regular file");
  const bool is_pipe = S_ISFIFO(facts.st_mode);
  const Descriptor descriptor(
      open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | (is_pipe ? O_NONBLOCK : 0)));  // else a terminal may wait
  if (descriptor.number() < 0) return cannot();
  // Who writes to a pipe with a name may come later; the writer of this process's own has been there from the start.
  bool waits = is_pipe && !file.starts_with("/dev/") && !file.starts_with("/proc/");
  std::string text;
  constexpr std::size_t piece = 1 << 16;
  while (text.size() <= ConfigLimits::bytes) {
    const std::size_t size = text.size();
    text.resize(size + piece);
    const ssize_t count = read(descriptor.number(), text.data() + size, piece);
    text.resize(size + static_cast<std::size_t>(count < 0 ? 0 : count));
    if (count < 0 && errno != EINTR && errno != EAGAIN) return cannot();
    if (count == 0 && (!waits || size > 0)) return text;
    const bool silent = count < 0 && errno == EAGAIN;
    if (silent || count == 0) {
      const std::string problem = wait_for_text(descriptor.number(), silent, size > 0);
      if (!problem.empty()) return fail(problem + "; write the config to a file");
      waits = waits && silent;  // now somebody has written, or has come and gone
    }
  }
  return fail(format("is larger than {} MB", ConfigLimits::bytes / 1'000'000));
}

}  // namespace trainctl
