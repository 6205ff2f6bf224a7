// Replaces operator new and delete of the test program, and counts calls.
#include "test/support/count_allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

// The linker defines these symbols: the begin of the program and the end of its code.
extern "C" const char __executable_start[], etext[];

namespace {

std::atomic<std::int64_t> count = 0;

// Whether an address is in the code of this program, not of a library.
bool is_ours(const void* address) { return address >= __executable_start && address < etext; }

void* allocate(std::size_t size, std::size_t alignment, const void* caller) {
  if (is_ours(caller)) ++count;
  void* memory = alignment == 0 ? std::malloc(size)
                                : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

namespace trainctl::test {
std::int64_t allocations_of_ours() { return count; }
}  // namespace trainctl::test

void* operator new(std::size_t size) { return allocate(size, 0, __builtin_return_address(0)); }
void* operator new[](std::size_t size) { return allocate(size, 0, __builtin_return_address(0)); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, 0, __builtin_return_address(0));
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, 0, __builtin_return_address(0));
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment), __builtin_return_address(0));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment), __builtin_return_address(0));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
