// Allocates the cache's memory and tracks the state of its rows.
#include "io/loader/cache.h"

#include <sys/mman.h>

#include <algorithm>
#include <limits>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/memory.h"

namespace trainctl {

void SampleCache::Unmap::operator()(std::byte* data) const { munmap(data, bytes); }

SampleCache::SampleCache(std::int64_t samples, std::int64_t used, std::int64_t row_bytes)
    : row_bytes_(row_bytes), rows_(nullptr, Unmap{0}) {
  std::int64_t bytes = 0;
  const bool overflow = __builtin_mul_overflow(samples, row_bytes, &bytes);
  const std::int64_t available = available_memory().value_or(std::numeric_limits<std::int64_t>::max());
  if (overflow || used * row_bytes > available) {
    throw Error(ErrorKind::resource,
                format("`cache: memory` needs {:.1f} GB for {} samples; {:.1f} GB are free",
                       static_cast<double>(used) * static_cast<double>(row_bytes) / 1e9, used,
                       static_cast<double>(available) / 1e9),
                "leave it out: the samples are then read again in every epoch");
  }
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(1, bytes));
  void* address = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) throw Error(ErrorKind::resource, format("no memory for a cache of {} bytes", bytes));
  rows_ = {static_cast<std::byte*>(address), Unmap{size}};
  states_ = std::make_unique<std::atomic<std::uint8_t>[]>(static_cast<std::size_t>(samples));
}

const std::byte* SampleCache::find(std::int64_t sample) const {
  if (states_[static_cast<std::size_t>(sample)].load(std::memory_order_acquire) != filled) return nullptr;
  return rows_.get() + sample * row_bytes_;
}

std::byte* SampleCache::claim(std::int64_t sample) {
  std::uint8_t expected = empty;
  const bool mine =
      states_[static_cast<std::size_t>(sample)].compare_exchange_strong(expected, claimed, std::memory_order_relaxed);
  return mine ? rows_.get() + sample * row_bytes_ : nullptr;
}

void SampleCache::publish(std::int64_t sample) {
  states_[static_cast<std::size_t>(sample)].store(filled, std::memory_order_release);
}

}  // namespace trainctl
