// Implements memory of the emulated runtime: each device has a region of addresses that the host cannot access.
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "test/emulated_gpu/runtime.h"
#include "test/emulated_gpu/streams.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(memory, bytes) static_cast<void>(0)
#define ASAN_UNPOISON_MEMORY_REGION(memory, bytes) static_cast<void>(0)
#endif

namespace emulated {
namespace {

constexpr std::size_t alignment = 256, red_zone = 256;

std::size_t region_bytes() {
  const char* text = std::getenv("TRAINCTL_EMULATED_GPU_BYTES");
  return text == nullptr ? std::size_t{4} << 30 : std::strtoull(text, nullptr, 10) / 4096 * 4096;
}

// The memory of a device: allocations by address, first fit, with a red zone after each.
struct Region {
  std::byte* begin = nullptr;
  std::size_t bytes = region_bytes(), used = 0, touched = 0;
  std::map<std::byte*, std::size_t> live;

  Region() {
    void* memory = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    begin = static_cast<std::byte*>(memory);
  }
  static std::size_t taken(std::size_t size) { return (size + red_zone + alignment - 1) / alignment * alignment; }

  std::byte* allocate(std::size_t size) {
    std::byte* at = begin;
    for (const auto& [other, other_size] : live) {
      if (static_cast<std::size_t>(other - at) >= taken(size)) break;
      at = other + taken(other_size);
    }
    if (taken(size) > bytes - static_cast<std::size_t>(at - begin)) return nullptr;
    live[at] = size;
    used += taken(size);
    touched = std::max(touched, (static_cast<std::size_t>(at - begin) + taken(size) + 4095) / 4096 * 4096);
    return at;
  }
};

struct Memories {
  std::mutex mutex;
  std::vector<Region> devices = std::vector<Region>(static_cast<std::size_t>(std::max(device_count(), 1)));
  std::map<const std::byte*, std::size_t> pinned;
  int accesses = 0;

  Region* region_of(const void* memory) {
    for (Region& region : devices) {
      if (memory >= region.begin && memory < region.begin + region.bytes) return &region;
    }
    return nullptr;
  }
  void protect(int rights) {
    for (const Region& region : devices) {
      if (region.touched > 0) mprotect(region.begin, region.touched, rights);
    }
  }
};

Memories& memories() {
  static Memories& all = *new Memories;
  return all;
}

template <class Blocks>
bool within(const Blocks& blocks, const void* memory, std::size_t bytes) {
  auto block = blocks.upper_bound(static_cast<std::byte*>(const_cast<void*>(memory)));
  if (block == blocks.begin()) return false;
  --block;
  return static_cast<const std::byte*>(memory) + bytes <= block->first + block->second;
}

void fill_fresh(void* memory, std::size_t bytes) { std::memset(memory, 0xff, bytes); }

}  // namespace

DeviceAccess::DeviceAccess() {
  const std::scoped_lock lock(memories().mutex);
  if (memories().accesses++ == 0) memories().protect(PROT_READ | PROT_WRITE);
}

DeviceAccess::~DeviceAccess() {
  const std::scoped_lock lock(memories().mutex);
  if (--memories().accesses == 0) memories().protect(PROT_NONE);
}

MemoryKind memory_kind(const void* memory) {
  const std::scoped_lock lock(memories().mutex);
  if (memories().region_of(memory) != nullptr) return MemoryKind::device;
  return within(memories().pinned, memory, 0) ? MemoryKind::pinned : MemoryKind::pageable;
}

bool device_may_use(const void* memory, std::size_t bytes) {
  const std::scoped_lock lock(memories().mutex);
  const Region* region = memories().region_of(memory);
  return region != nullptr ? within(region->live, memory, bytes) : within(memories().pinned, memory, bytes);
}

}  // namespace emulated

using namespace emulated;

extern "C" {

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  return call([&] {
    if (const cudaError_t forbidden = forbid_while_capturing()) return forbidden;
    *memory = nullptr;
    if (bytes == 0) return cudaSuccess;
    {
      const std::scoped_lock lock(memories().mutex);
      Region& region = memories().devices[static_cast<std::size_t>(current_device())];
      *memory = region.allocate(bytes);
      if (*memory == nullptr) return cudaErrorMemoryAllocation;
      ASAN_POISON_MEMORY_REGION(*memory, Region::taken(bytes));
      ASAN_UNPOISON_MEMORY_REGION(*memory, bytes);
      if (memories().accesses > 0) memories().protect(PROT_READ | PROT_WRITE);
    }
    const DeviceAccess access;
    fill_fresh(*memory, bytes);
    return cudaSuccess;
  });
}

cudaError_t cudaFree(void* memory) {
  return call([&] {
    if (memory == nullptr) return cudaSuccess;
    if (const cudaError_t forbidden = forbid_while_capturing()) return forbidden;
    run_all();
    const std::scoped_lock lock(memories().mutex);
    Region* region = memories().region_of(memory);
    if (region == nullptr) return cudaErrorInvalidValue;
    const auto found = region->live.find(static_cast<std::byte*>(memory));
    if (found == region->live.end()) return cudaErrorInvalidValue;
    const std::size_t bytes = found->second;
    region->live.erase(found);
    region->used -= Region::taken(bytes);
    ASAN_POISON_MEMORY_REGION(memory, Region::taken(bytes));
    return cudaSuccess;
  });
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  return call([&] {
    const std::scoped_lock lock(memories().mutex);
    const Region& region = memories().devices[static_cast<std::size_t>(current_device())];
    *total = region.bytes;
    *free = region.bytes - region.used;
    return cudaSuccess;
  });
}

cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  return call([&] {
    if (const cudaError_t forbidden = forbid_while_capturing()) return forbidden;
    *memory = bytes == 0 ? nullptr : std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (*memory == nullptr) return bytes == 0 ? cudaSuccess : cudaErrorMemoryAllocation;
    fill_fresh(*memory, bytes);
    const std::scoped_lock lock(memories().mutex);
    memories().pinned[static_cast<std::byte*>(*memory)] = bytes;
    return cudaSuccess;
  });
}
cudaError_t cudaMallocHost(void** memory, std::size_t bytes) { return cudaHostAlloc(memory, bytes, 0); }

cudaError_t cudaFreeHost(void* memory) {
  return call([&] {
    if (memory == nullptr) return cudaSuccess;
    if (const cudaError_t forbidden = forbid_while_capturing()) return forbidden;
    run_all();
    const std::scoped_lock lock(memories().mutex);
    if (memories().pinned.erase(static_cast<std::byte*>(memory)) == 0) return cudaErrorInvalidValue;
    std::free(memory);
    return cudaSuccess;
  });
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  return call([&] {
    if (memory_kind(host) != MemoryKind::pinned) return cudaErrorInvalidValue;
    *device = host;
    return cudaSuccess;
  });
}
}
