// Writes text and bytes to file descriptors.
#include "core/base/output.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "core/base/error.h"
#include "core/base/terminal_text.h"

namespace trainctl {

void prepare_descriptors() {
  for (int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // open() returns the lowest free number.
    if (fcntl(descriptor, F_GETFD) < 0 && errno == EBADF) open("/dev/null", O_RDWR);
  }
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
}

int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t done = write(descriptor, text.data(), text.size());
    if (done >= 0) {
      text.remove_prefix(static_cast<std::size_t>(done));
    } else if (errno == EAGAIN) {
      pollfd ready{descriptor, POLLOUT, 0};
      poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

int write_ready(int descriptor, std::string& text) {
  constexpr std::size_t chunk = 4096;  // a pipe that is ready accepts this number of bytes
  std::size_t done = 0;
  int error = 0;
  while (done < text.size() && error == 0) {
    pollfd ready{descriptor, POLLOUT, 0};
    if (poll(&ready, 1, 0) <= 0) break;
    const ssize_t count = write(descriptor, text.data() + done, std::min(chunk, text.size() - done));
    if (count >= 0) {
      done += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      error = errno;
    }
  }
  text.erase(0, done);
  return error;
}

bool write_output(std::string_view text) { return write_output_bytes(terminal_text(text)); }

bool write_output_bytes(std::string_view bytes) {
  const int error = write_all(STDOUT_FILENO, bytes);
  if (error == 0 || error == EPIPE) return error == 0;
  throw Error(ErrorKind::resource, "standard output cannot be written: " + std::generic_category().message(error));
}

}  // namespace trainctl
