// Allocates private memory by mmap: zeroed, on pages of its own.
#include "parallel/comm/host_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/error.h"
#include "core/base/format.h"

namespace trainctl {

Memory allocate_host(std::int64_t bytes) {
  const auto length = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
  void* memory = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw Error(ErrorKind::resource,
                format("cannot allocate {} bytes of host memory: {}", bytes, std::strerror(errno)));
  }
  auto* data = static_cast<std::byte*>(memory);
  return {{data, [length](std::byte* address) { munmap(address, length); }}, bytes};
}

}  // namespace trainctl
