// Stacks that a thread can leave and come back to, on x86-64.
#pragma once

#include <cstddef>

namespace emulated {

class Fiber {
 public:
  // Of the calling thread's own stack.
  Fiber() = default;
  // A stack that starts with entry(), which must never return.
  explicit Fiber(void (*entry)());
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber();

  // Leaves this fiber, which the caller runs on, for another one.
  void switch_to(Fiber& other);

 private:
  static void arrive();

  void (*entry_)() = nullptr;
  void* position_ = nullptr;  // the stack pointer while left
  std::byte* stack_ = nullptr;
  const void* bottom_ = nullptr;  // as the address sanitizer counts it
  std::size_t bytes_ = 0;
  void* sanitizer_state_ = nullptr;
};

}  // namespace emulated
