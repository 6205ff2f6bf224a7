// Finds and fills the __shared__ variables of all kernels.
#include "test/emulated_gpu/shared_memory.h"

#include <link.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace emulated {
namespace {

thread_local char probe = 0;  // the emulation's only thread-local variable: its address locates the storage

// The module's thread-local storage: the distance from its start to the probe, and its size.
struct Storage {
  std::ptrdiff_t before_probe = 0;
  std::size_t bytes = 0;
};

int find(dl_phdr_info* object, std::size_t, void* result) {
  const auto at = reinterpret_cast<std::uintptr_t>(&poison_shared_memory);
  bool ours = false;
  std::size_t bytes = 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& header = object->dlpi_phdr[i];
    const std::uintptr_t begin = object->dlpi_addr + header.p_vaddr;
    ours = ours || (header.p_type == PT_LOAD && at >= begin && at < begin + header.p_memsz);
    if (header.p_type == PT_TLS) bytes = header.p_memsz;
  }
  if (!ours) return 0;
  *static_cast<Storage*>(result) = {&probe - static_cast<const char*>(object->dlpi_tls_data), bytes};
  return 1;
}

}  // namespace

void poison_shared_memory() {
  static const Storage storage = [] {
    probe = 1;  // allocates this thread's storage
    Storage found;
    dl_iterate_phdr(find, &found);
    return found;
  }();
  std::memset(&probe - storage.before_probe, 0xff, storage.bytes);
}

}  // namespace emulated
