// Switches a thread between stacks, on x86-64.
#pragma once

#include <cstddef>

namespace emulated {

class Fiber {
 public:
  // A fiber for the calling thread's own stack.
  Fiber() = default;
  // A fiber with its own stack, which starts with entry(); entry() must never return.
  explicit Fiber(void (*entry)());
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber();

  // Leaves this fiber, which the caller runs on, for another one.
  void switch_to(Fiber& other);

 private:
  static void arrive();

  void (*entry_)() = nullptr;
  void* position_ = nullptr;  // stack pointer while another fiber runs
  std::byte* stack_ = nullptr;
  const void* bottom_ = nullptr;  // lowest address of the stack, for the address sanitizer
  std::size_t bytes_ = 0;
  void* sanitizer_state_ = nullptr;
};

}  // namespace emulated
