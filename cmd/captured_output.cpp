// A file in memory in the place of standard output.
#include "cmd/captured_output.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdio>

#include "core/base/error.h"

namespace trainctl {

CapturedOutput::CapturedOutput() : file_(memfd_create("output", MFD_CLOEXEC)) {
  std::fflush(stdout);
  if (file_ >= 0) before_ = dup(STDOUT_FILENO);
  if (before_ < 0 || dup2(file_, STDOUT_FILENO) < 0) throw Error(ErrorKind::resource, "no file in memory can be made");
}

CapturedOutput::~CapturedOutput() {
  std::fflush(stdout);
  dup2(before_, STDOUT_FILENO);
  close(before_);
  close(file_);
}

std::string CapturedOutput::text() const {
  std::string all;
  std::array<char, 4096> part{};
  for (ssize_t got = 0; (got = pread(file_, part.data(), part.size(), static_cast<off_t>(all.size()))) > 0;) {
    all.append(part.data(), static_cast<std::size_t>(got));
  }
  return all;
}

}  // namespace trainctl
