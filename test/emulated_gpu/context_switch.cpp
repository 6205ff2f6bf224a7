// Switches a thread between stacks: pushes the registers that a call preserves, and exchanges the stack pointer.
// (swapcontext() makes a system call each time.)
#include "test/emulated_gpu/context_switch.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#else
static void __sanitizer_start_switch_fiber(void**, const void*, std::size_t) {}
static void __sanitizer_finish_switch_fiber(void*, const void**, std::size_t*) {}
static void __asan_unpoison_memory_region(const void*, std::size_t) {}
#endif

extern "C" void emulated_switch(void** left, void* entered);
asm(R"(
  .text
  .hidden emulated_switch
  .globl emulated_switch
  .type emulated_switch, @function
emulated_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size emulated_switch, .-emulated_switch
)");

namespace emulated {
namespace {

constexpr std::size_t stack_bytes = 256 << 10;
Fiber *from = nullptr, *to = nullptr;  // the fibers of the current switch

}  // namespace

Fiber::Fiber(void (*entry)()) : entry_(entry), bytes_(stack_bytes) {
  void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  stack_ = static_cast<std::byte*>(memory);
  bottom_ = stack_;
  // Six registers, the return address, and the value that arrive() uses as its own return address.
  auto** top = reinterpret_cast<void**>(stack_ + bytes_);
  *--top = nullptr;
  *--top = reinterpret_cast<void*>(&Fiber::arrive);
  position_ = top - 6;
}

Fiber::~Fiber() {
  if (stack_ == nullptr) return;
  __asan_unpoison_memory_region(stack_, bytes_);
  munmap(stack_, bytes_);
}

void Fiber::arrive() {
  __sanitizer_finish_switch_fiber(nullptr, &from->bottom_, &from->bytes_);
  to->entry_();
}

void Fiber::switch_to(Fiber& other) {
  from = this;
  to = &other;
  __sanitizer_start_switch_fiber(&sanitizer_state_, other.bottom_, other.bytes_);
  emulated_switch(&position_, other.position_);
  __sanitizer_finish_switch_fiber(sanitizer_state_, &from->bottom_, &from->bytes_);
}

}  // namespace emulated
