// Reading by system calls, since streams do not tell an error from the end.
#include "io/yaml/text.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
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

}  // namespace

std::optional<std::string> read_text(const std::string& file, FileKind kind, const Place& place,
                                     const std::string& what, Reader& reader) {
  const auto fail = [&](const std::string& message) {
    reader.error(place, what + " " + message);
    return std::nullopt;
  };
  const auto cannot = [&] { return fail(std::string("cannot be read: ") + std::strerror(errno)); };
  // Looked at before it is opened: opening a pipe waits for its writer.
  struct stat facts {};
  if (stat(file.c_str(), &facts) != 0) return cannot();
  if (S_ISDIR(facts.st_mode)) return fail("is a folder");
  if (kind == FileKind::regular && !S_ISREG(facts.st_mode)) return fail("is no regular file");
  const Descriptor descriptor(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (descriptor.number() < 0) return cannot();
  std::string text;
  constexpr std::size_t piece = 1 << 16;
  while (text.size() <= ConfigLimits::bytes) {
    const std::size_t size = text.size();
    text.resize(size + piece);
    const ssize_t count = read(descriptor.number(), text.data() + size, piece);
    text.resize(size + static_cast<std::size_t>(count < 0 ? 0 : count));
    if (count < 0 && errno != EINTR) return cannot();
    if (count == 0) return text;
  }
  return fail(format("is larger than {} MB", ConfigLimits::bytes / 1'000'000));
}

}  // namespace trainctl
