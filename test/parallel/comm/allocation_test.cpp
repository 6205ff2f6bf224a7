// Tests that collectives allocate nothing, by counting operator new on the calling thread.
#include <cstdlib>
#include <new>

#include "core/backend/cpu/runtime/streams.h"
#include "test/catch.h"
#include "test/parallel/comm/conformance.h"
#include "test/parallel/comm/on_threads.h"

namespace {
thread_local long allocations = 0;
}  // namespace

void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
// std::stable_sort takes its buffer from here.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace trainctl::allocation_test {

TEST_CASE("collectives allocate nothing") {
  const auto errors = on_threads(3, [](Communicator& communicator) {
    ImmediateStream stream;
    std::vector<float> values(30000, 1.0f);
    std::vector<float> received(30000);
    const View data{values.data(), DType::float32, 30000};
    const View result{received.data(), DType::float32, 30000};
    const long before = allocations;
    for (int step = 0; step < 100; ++step) {
      communicator.all_reduce(data, Reduction::maximum, stream);
      communicator.all_reduce(data.slice(0, 100), Reduction::maximum, stream);
      communicator.reduce_scatter(data, Reduction::maximum, stream);
      communicator.all_gather(data, stream);
      communicator.all_to_all(data, result, stream);
      communicator.broadcast(data, 1, stream);
      communicator.barrier(stream);
    }
    stream.synchronize();
    const long after = allocations;
    conformance::expect(after == before, "no allocation, but " + std::to_string(after - before));
  });
  CHECK(errors == std::vector<std::string>(3));
}

}  // namespace trainctl::allocation_test
