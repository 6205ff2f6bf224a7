// Captures NCCL's log in a memfd, which NCCL opens through /proc. The file needs no folder, and it is gone when the
// process ends, however it ends.
#include "parallel/health/doctor/nccl/capture.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "core/base/format.h"

namespace trainctl {
namespace {

constexpr std::array variables = {"NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE"};
constexpr std::size_t longest = 64 << 20;  // bytes of a log that are read

}  // namespace

NcclLogCapture::NcclLogCapture() {
  for (const char* variable : variables) {
    if (std::getenv(variable) == nullptr) continue;
    why_not_ = format("the variable {} is set, and decides what NCCL writes and where", variable);
    return;
  }
  file_ = memfd_create("nccl-log", MFD_CLOEXEC);
  if (file_ < 0) {
    why_not_ = format("memfd_create: {}", std::strerror(errno));
    return;
  }
  // NCCL would write its log to the standard output if it could not open the file.
  const std::string path = format("/proc/self/fd/{}", file_);
  const int again = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (again < 0) {
    why_not_ = format("{} cannot be opened: {}", path, std::strerror(errno));
    return;
  }
  close(again);
  setenv("NCCL_DEBUG", "INFO", 0);
  setenv("NCCL_DEBUG_SUBSYS", "INIT,ENV,NET,P2P,SHM", 0);
  setenv("NCCL_DEBUG_FILE", path.c_str(), 0);
}

// NCCL has opened the file itself, and may write to it for as long as the process runs.
NcclLogCapture::~NcclLogCapture() {
  if (why_not_.empty()) {
    for (const char* variable : variables) unsetenv(variable);
  }
  if (file_ >= 0) close(file_);
}

std::string NcclLogCapture::text() const {
  std::string all;
  std::array<char, 1 << 16> piece{};
  while (why_not_.empty() && all.size() < longest) {
    const ssize_t count = pread(file_, piece.data(), piece.size(), static_cast<off_t>(all.size()));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    all.append(piece.data(), static_cast<std::size_t>(count));
  }
  return all;
}

}  // namespace trainctl
