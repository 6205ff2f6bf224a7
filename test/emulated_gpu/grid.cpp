// Runs grids of threads on the CPU.
#include "test/emulated_gpu/grid.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "test/emulated_gpu/context_switch.h"
#include "test/emulated_gpu/device_code.h"
#include "test/emulated_gpu/runtime.h"
#include "test/emulated_gpu/shared_memory.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace emulated {
namespace {

constexpr unsigned warp = 32;

struct Thread {
  enum class State { unstarted, runs, at_barrier, in_warp, left } state = State::unstarted;
  Fiber* fiber = nullptr;
  Where where;
  // The inputs and the result of a warp exchange.
  Exchange what{};
  unsigned mask = 0, source = 0;
  std::uint64_t bits = 0, result = 0;
};

// Runs the blocks of a grid one after the other. A fiber runs thread after thread; if a thread has to wait, its fiber
// waits, and another fiber runs the remaining threads.
class Blocks {
 public:
  // Returns false if the block hangs.
  bool run(const std::function<void()>& body, bool backwards);

  int meet_block(bool predicate, const Where& where);
  std::uint64_t meet_warp(Exchange what, unsigned mask, std::uint64_t bits, unsigned source, const Where& where);

 private:
  static void fiber_main();
  void run_threads();
  void make_current(unsigned number);
  void wait();
  void resume(unsigned number);
  unsigned participants(unsigned first, unsigned count, unsigned number) const;
  void complete_exchange(unsigned first, unsigned number);
  void leave_warp(unsigned first);
  std::string waiting() const;

  std::vector<Thread> threads_;
  std::deque<unsigned> ready_;  // threads that can continue
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  Fiber scheduler_;
  Fiber* fiber_ = nullptr;  // the fiber that runs now
  const std::function<void()>* body_ = nullptr;
  unsigned next_ = 0, current_ = 0, left_ = 0, at_barrier_ = 0;
  int votes_ = 0, result_ = 0;
  bool backwards_ = false;
};

Blocks& blocks() {
  static Blocks& all = *new Blocks;  // never destroyed: streams may run until the process ends
  return all;
}

bool Blocks::run(const std::function<void()>& body, bool backwards) {
  body_ = &body;
  backwards_ = backwards;
  threads_.assign(blockDim.x * blockDim.y * blockDim.z, {});
  next_ = left_ = at_barrier_ = 0;
  votes_ = 0;
  while (left_ < threads_.size()) {
    // Threads that have started continue first or last: both are legal.
    const bool start = next_ < threads_.size() && (ready_.empty() || !backwards);
    if (start) {
      if (idle_.empty()) idle_.push_back(fibers_.emplace_back(std::make_unique<Fiber>(fiber_main)).get());
      fiber_ = idle_.back();
      idle_.pop_back();
    } else if (!ready_.empty()) {
      make_current(ready_.front());
      ready_.pop_front();
      fiber_ = threads_[current_].fiber;
    } else {
      fault("a kernel hangs: " + waiting());
      fibers_.clear();  // their threads will never return
      idle_.clear();
      return false;
    }
    scheduler_.switch_to(*fiber_);
  }
  return true;
}

void Blocks::fiber_main() {
  for (;;) {
    blocks().run_threads();
    Fiber* self = blocks().fiber_;
    blocks().idle_.push_back(self);
    self->switch_to(blocks().scheduler_);
  }
}

void Blocks::run_threads() {
  while (next_ < threads_.size() && (ready_.empty() || !backwards_)) {
    make_current(backwards_ ? static_cast<unsigned>(threads_.size()) - 1 - next_ : next_);
    ++next_;
    threads_[current_].state = Thread::State::runs;
    (*body_)();
    threads_[current_].state = Thread::State::left;
    ++left_;
    leave_warp(current_ / warp * warp);
  }
}

void Blocks::make_current(unsigned number) {
  current_ = number;
  threadIdx = {number % blockDim.x, number / blockDim.x % blockDim.y, number / blockDim.x / blockDim.y};
}

void Blocks::wait() {
  Fiber* self = threads_[current_].fiber = fiber_;
  self->switch_to(scheduler_);
}

void Blocks::resume(unsigned number) {
  threads_[number].state = Thread::State::runs;
  ready_.push_back(number);
}

int Blocks::meet_block(bool predicate, const Where& where) {
  Thread& self = threads_[current_];
  self.state = Thread::State::at_barrier;
  self.where = where;
  votes_ += predicate ? 1 : 0;
  if (++at_barrier_ == threads_.size()) {
    for (unsigned i = 0; i < threads_.size(); ++i) {
      if (threads_[i].where.line() != where.line()) {
        fault("the threads of a block meet at different barriers: " + waiting());
        break;
      }
    }
    at_barrier_ = 0;
    result_ = votes_;
    votes_ = 0;
    for (unsigned i = 0; i < threads_.size(); ++i)
      resume(backwards_ ? static_cast<unsigned>(threads_.size()) - 1 - i : i);
  }
  wait();
  return result_;  // no later barrier can complete before this thread has reached it
}

std::uint64_t Blocks::meet_warp(Exchange what, unsigned mask, std::uint64_t bits, unsigned source, const Where& where) {
  Thread& self = threads_[current_];
  if ((mask >> current_ % warp & 1) == 0) fault("a thread is not in the mask of its own warp exchange: " + waiting());
  self = {Thread::State::in_warp, nullptr, where, what, mask, source, bits, 0};
  complete_exchange(current_ / warp * warp, current_ % warp);
  wait();
  return threads_[current_].result;
}

// Returns the threads of a warp that take part in the exchange of thread `number`, one bit per thread. Returns 0 while
// threads of its mask, which have not left the kernel, have not reached the exchange.
unsigned Blocks::participants(unsigned first, unsigned count, unsigned number) const {
  const Thread& one = threads_[first + number];
  unsigned here = 1u << number;
  // The thread that starts next is checked first, since it is usually the one that is missing.
  for (unsigned n = 1; n < count; ++n) {
    const unsigned k = (number + (backwards_ ? count - n : n)) % count;
    const Thread& other = threads_[first + k];
    if ((one.mask >> k & 1) == 0 || other.state == Thread::State::left) continue;
    const bool same = other.state == Thread::State::in_warp && other.mask == one.mask && other.what == one.what &&
                      other.where.line() == one.where.line();
    if (!same) return 0;
    here |= 1u << k;
  }
  return here;
}

// Completes an exchange and resumes its threads, if all have reached it.
void Blocks::complete_exchange(unsigned first, unsigned number) {
  const unsigned count = std::min<unsigned>(warp, static_cast<unsigned>(threads_.size()) - first);
  const unsigned here = participants(first, count, number);
  if (here == 0) return;
  unsigned voted = 0;
  for (unsigned k = 0; k < count; ++k) voted |= (here >> k & 1) != 0 && threads_[first + k].bits != 0 ? 1u << k : 0u;
  for (unsigned k = 0; k < count; ++k) {
    if ((here >> k & 1) == 0) continue;
    Thread& thread = threads_[first + k];
    switch (thread.what) {
      case Exchange::lane:
        thread.result = (here >> thread.source & 1) != 0 ? threads_[first + thread.source].bits : ~std::uint64_t{0};
        break;
      case Exchange::ballot:
        thread.result = voted;
        break;
      case Exchange::any:
        thread.result = voted != 0;
        break;
      case Exchange::all:
        thread.result = voted == here;
        break;
      case Exchange::match:
        thread.result = 0;
        for (unsigned j = 0; j < count; ++j) {
          if ((here >> j & 1) != 0 && threads_[first + j].bits == thread.bits) thread.result |= 1u << j;
        }
        break;
    }
    resume(first + k);
  }
}

// Completes the exchanges of a warp that waited only for a thread that has now left the kernel.
void Blocks::leave_warp(unsigned first) {
  const unsigned count = std::min<unsigned>(warp, static_cast<unsigned>(threads_.size()) - first);
  for (unsigned i = 0; i < count; ++i) {
    if (threads_[first + i].state == Thread::State::in_warp) complete_exchange(first, i);
  }
}

// Returns, for example, "224 threads wait at a barrier in sum_columns() (column_sums.cu:33), 32 threads have left the
// kernel (block of 256)".
std::string Blocks::waiting() const {
  std::map<std::string, int> counts;
  for (const Thread& thread : threads_) {
    const std::string file = thread.where.file_name();
    const std::string location = std::string(thread.where.function_name()) + " (" + file.substr(file.rfind('/') + 1) +
                                 ":" + std::to_string(thread.where.line()) + ")";
    const bool left = thread.state == Thread::State::left;
    if (left || thread.state == Thread::State::at_barrier || thread.state == Thread::State::in_warp) {
      const char* what = thread.state == Thread::State::at_barrier ? "wait at a barrier in " : "exchange values in ";
      ++counts[left ? "have left the kernel" : what + location];
    }
  }
  std::string text;
  for (const auto& [what, count] : counts)
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " threads " + what;
  return text + " (block of " + std::to_string(threads_.size()) + ")";
}

}  // namespace

int meet_block(bool predicate, const Where& where) { return blocks().meet_block(predicate, where); }

std::uint64_t meet_warp(Exchange what, unsigned mask, std::uint64_t bits, unsigned source, const Where& where) {
  return blocks().meet_warp(what, mask, bits, source, where);
}

void run_grid(dim3 grid, dim3 block, const std::function<void()>& thread) {
  static unsigned launches = 0;
  gridDim = grid;
  blockDim = block;
  const std::uint64_t count = std::uint64_t{grid.x} * grid.y * grid.z;
  // Every block runs once: steps are about 0.62 count and have no common divisor with count.
  std::uint64_t step = count * 5 / 8 + 1;
  while (std::gcd(step, count) != 1) ++step;
  std::uint64_t number = ++launches % count;
  for (std::uint64_t i = 0; i < count; ++i, number = (number + step) % count) {
    blockIdx = {static_cast<unsigned>(number % grid.x), static_cast<unsigned>(number / grid.x % grid.y),
                static_cast<unsigned>(number / grid.x / grid.y)};
    poison_shared_memory();
    if (!blocks().run(thread, (launches + i) % 2 != 0)) return;
  }
}

}  // namespace emulated
