// The memory of one batch, and the two counters with which workers and the caller of next() pass it to each other.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <memory>
#include <new>
#include <vector>

#include "core/base/checked.h"
#include "core/exec/interfaces/batch_source.h"
#include "core/spec/values.h"

namespace trainctl {

// Memory aligned to 64 bytes. Throws std::bad_alloc.
inline Memory aligned_memory(std::int64_t bytes) {
  auto* data = static_cast<std::byte*>(std::aligned_alloc(64, static_cast<std::size_t>(bytes + 64) / 64 * 64));
  if (data == nullptr) throw std::bad_alloc();
  return {std::shared_ptr<std::byte>(data, [](std::byte* memory) { std::free(memory); }), bytes};
}

// Waits while `word` holds `value`, at most for some milliseconds (waits of std::atomic have no time limit). May return
// earlier.
inline void wait_while(std::atomic<std::uint32_t>& word, std::uint32_t value, long milliseconds) {
  const timespec limit{milliseconds / 1000, milliseconds % 1000 * 1000000};
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, &limit, nullptr, 0);
}
inline void wake_waiter(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

// The sizes of a loader's buffers, known before the data is open.
struct BufferPlan {
  std::int64_t rows = 0;                      // rows of one buffer: the rank's largest share of a batch
  std::vector<std::int64_t> inputs, targets;  // bytes per row of each input or target
  std::int64_t weights = 1;                   // number of weights per row
  int buffers = 1;

  std::int64_t bytes() const {
    std::int64_t row = weights * size_of(DType::float32) + size_of(DType::int64);  // int64: the sample's number
    for (const auto* list : {&inputs, &targets}) {
      for (const std::int64_t bytes : *list) row = checked_add(row, bytes);
    }
    return checked_multiply(checked_multiply(rows, row), buffers);
  }
};

// The number of batches of `bytes` bytes that are filled ahead if `prefetch` is auto. The number is larger for small
// batches: training may finish a small batch while a worker is delayed, and small batches take little memory. The
// number depends on the config only, so that a rank's memory is known in advance.
inline int batches_ahead(std::int64_t bytes) {
  constexpr std::int64_t enough = 16 << 20;
  return static_cast<int>(std::clamp<std::int64_t>(enough / std::max<std::int64_t>(1, bytes), 2, 8));
}

// Computes the sizes of a loader's buffers. `batch_size` counts the samples of all ranks. Without workers there is one
// buffer, which is filled when its batch is requested.
inline BufferPlan plan_buffers(const std::vector<TensorType>& inputs, const std::vector<TensorType>& targets,
                               std::int64_t weights, std::int64_t batch_size, const BatchDivision& division,
                               bool workers, const Auto<int>& prefetch) {
  BufferPlan plan{largest_share(batch_size, division), {}, {}, weights, 1};
  for (const TensorType& input : inputs) plan.inputs.push_back(input.bytes());
  for (const TensorType& target : targets) plan.targets.push_back(target.bytes());
  if (workers) plan.buffers = prefetch.or_else(batches_ahead(plan.bytes())) + 1;
  return plan;
}

struct BatchBuffer {
  BatchBuffer(const BufferPlan& plan, std::uint32_t chunks, const AllocateBatch& allocate)
      : weights(static_cast<std::size_t>(checked_multiply(plan.rows, plan.weights))),
        samples(static_cast<std::size_t>(plan.rows)),
        errors(chunks),
        pending(chunks) {
    for (const std::int64_t row : plan.inputs) {
      const std::int64_t size = checked_multiply(plan.rows, row);
      inputs.push_back(allocate ? allocate(size) : aligned_memory(size));
    }
    for (const std::int64_t row : plan.targets) targets.push_back(aligned_memory(checked_multiply(plan.rows, row)));
  }

  // The bytes of the inputs, targets, weights and sample numbers.
  std::int64_t bytes() const {
    std::int64_t sum = std::ssize(weights) * size_of(DType::float32) + std::ssize(samples) * size_of(DType::int64);
    for (const auto* list : {&inputs, &targets}) {
      for (const Memory& memory : *list) sum += memory.bytes;
    }
    return sum;
  }

  std::vector<Memory> inputs, targets;
  std::vector<float> weights;
  std::vector<std::int64_t> samples;
  std::vector<std::exception_ptr> errors;  // error of each chunk; null if there was none
  // The number of times that the buffer was used and given back. Batch k may be written to the buffer once this number
  // is k / buffers.
  std::atomic<std::uint32_t> round{0};
  // The number of chunks that are not filled yet; 0: the batch is complete.
  std::atomic<std::uint32_t> pending;
};

}  // namespace trainctl
