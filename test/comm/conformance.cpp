// The cases. Values are functions of rank and index whose sums are exact, so that a loop in double is the reference.
#include "test/comm/conformance.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>

#include "core/backend/cpu/streams.h"
#include "core/base/hash.h"
#include "core/base/random.h"

namespace trainctl::conformance {

namespace {

constexpr std::int64_t sizes[] = {0, 1, 3, 17, 1000, 5000, 100003, 1000003};
constexpr DType all_types[] = {DType::float32, DType::float64, DType::bfloat16, DType::float16,
                               DType::int32,   DType::int64,   DType::uint8};

// A small whole number that every type holds exactly, also when four of them are added.
int value_of(int rank, std::int64_t index) {
  return static_cast<int>(
             (static_cast<std::uint32_t>(index) * 2654435761u + static_cast<std::uint32_t>(rank) * 40503u) >> 16) %
         60;
}

std::uint16_t bfloat16_of(float value) { return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16); }

// Half precision by its definition, for values that it holds exactly: 1.m * 2^(e - 15), zero being all zeros.
std::uint16_t float16_of(double value) {
  if (value == 0) return 0;
  int exponent = 0;
  const double fraction = std::frexp(std::abs(value), &exponent);  // in [0.5, 1)
  const int bits = (exponent - 1 + 15) * 1024 + static_cast<int>((2 * fraction - 1) * 1024);
  return static_cast<std::uint16_t>(bits + (value < 0 ? 0x8000 : 0));
}

double of_float16(std::uint16_t half) {
  const int exponent = (half >> 10) & 31, mantissa = half & 1023;
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return half & 0x8000 ? -magnitude : magnitude;
}

void store(View view, std::int64_t index, double value) {
  switch (view.dtype) {
    case DType::float32:
      view.as<float>()[index] = static_cast<float>(value);
      break;
    case DType::float64:
      view.as<double>()[index] = value;
      break;
    case DType::bfloat16:
      view.as<std::uint16_t>()[index] = bfloat16_of(static_cast<float>(value));
      break;
    case DType::float16:
      view.as<std::uint16_t>()[index] = float16_of(value);
      break;
    case DType::int32:
      view.as<std::int32_t>()[index] = static_cast<std::int32_t>(value);
      break;
    case DType::int64:
      view.as<std::int64_t>()[index] = static_cast<std::int64_t>(value);
      break;
    case DType::uint8:
      view.as<std::uint8_t>()[index] = static_cast<std::uint8_t>(value);
      break;
  }
}

double load(View view, std::int64_t index) {
  switch (view.dtype) {
    case DType::float32:
      return view.as<float>()[index];
    case DType::float64:
      return view.as<double>()[index];
    case DType::bfloat16:
      return std::bit_cast<float>(std::uint32_t{view.as<std::uint16_t>()[index]} << 16);
    case DType::float16:
      return of_float16(view.as<std::uint16_t>()[index]);
    case DType::int32:
      return view.as<std::int32_t>()[index];
    case DType::int64:
      return static_cast<double>(view.as<std::int64_t>()[index]);
    case DType::uint8:
      return view.as<std::uint8_t>()[index];
  }
  return 0;
}

template <class Value>
void fill(View view, Value value) {
  for (std::int64_t i = 0; i < view.count; ++i) store(view, i, value(i));
}

template <class Value>
void compare(View view, Value value, const std::string& what) {
  for (std::int64_t i = 0; i < view.count; ++i) {
    if (load(view, i) != value(i)) {
      expect(false, what + " " + std::string(name_of(view.dtype)) + " of " + std::to_string(view.count) + " at " +
                        std::to_string(i) + ": " + std::to_string(load(view, i)) + " for " + std::to_string(value(i)));
    }
  }
}

// Runs a test on memory of the communicator and on private memory, at an odd offset.
void on_both_kinds_of_memory(Communicator& communicator, std::int64_t bytes,
                             const std::function<void(std::byte*)>& test) {
  constexpr std::int64_t offset = 8;
  const Memory shared = communicator.allocate(bytes + offset);
  test(shared.get() + offset);
  std::vector<double> own(static_cast<std::size_t>(bytes / 8 + 2));
  test(reinterpret_cast<std::byte*>(own.data()) + offset);
}

double reduced(Reduction reduction, int ranks, std::int64_t index) {
  int result = value_of(0, index);
  for (int rank = 1; rank < ranks; ++rank) {
    const int value = value_of(rank, index);
    if (reduction == Reduction::sum) result += value;
    if (reduction == Reduction::minimum) result = std::min(result, value);
    if (reduction == Reduction::maximum) result = std::max(result, value);
  }
  return result;
}

void all_reduce(Communicator& communicator) {
  ImmediateStream stream;
  on_both_kinds_of_memory(communicator, sizes[7] * 8, [&](std::byte* memory) {
    for (const DType dtype : all_types) {
      for (const std::int64_t size : sizes) {
        for (const Reduction reduction : {Reduction::sum, Reduction::minimum, Reduction::maximum}) {
          if (size == sizes[7] && reduction != Reduction::sum) continue;
          const View view{memory, dtype, size};
          fill(view, [&](std::int64_t i) { return value_of(communicator.rank(), i); });
          communicator.all_reduce(view, reduction, stream);
          stream.synchronize();
          compare(
              view, [&](std::int64_t i) { return reduced(reduction, communicator.size(), i); }, "all_reduce");
        }
      }
    }
  });
}

// Sums that depend on the order: all ranks must still hold the same bits, and the same in every kind of memory.
void same_bits(Communicator& communicator) {
  ImmediateStream stream;
  std::vector<std::int64_t> hashes;
  on_both_kinds_of_memory(communicator, sizes[6] * 4, [&](std::byte* memory) {
    for (const DType dtype : {DType::float32, DType::bfloat16}) {
      for (const std::int64_t size : sizes) {
        if (size > sizes[6]) continue;
        const View view{memory, dtype, size};
        fill(view, [&](std::int64_t i) {
          return uniform01(philox({static_cast<std::uint32_t>(i), 3, 3, 3},
                                  {static_cast<std::uint32_t>(communicator.rank()), 5})[1]) -
                 0.3;
        });
        communicator.all_reduce(view, Reduction::sum, stream);
        stream.synchronize();
        hashes.push_back(static_cast<std::int64_t>(xxh3(view.data, static_cast<std::size_t>(view.bytes()))));
      }
    }
  });
  for (std::size_t i = 0; i < hashes.size() / 2; ++i) {
    expect(hashes[i] == hashes[i + hashes.size() / 2], "equal bits in shared and private memory");
  }
  std::vector<std::int64_t> least = hashes;
  std::vector<std::int64_t> most = hashes;
  const auto count = static_cast<std::int64_t>(hashes.size());
  communicator.all_reduce({least.data(), DType::int64, count}, Reduction::minimum, stream);
  communicator.all_reduce({most.data(), DType::int64, count}, Reduction::maximum, stream);
  stream.synchronize();
  expect(least == most, "equal bits on all ranks");
}

void reduce_scatter(Communicator& communicator) {
  ImmediateStream stream;
  const int ranks = communicator.size();
  on_both_kinds_of_memory(communicator, sizes[6] * 8 * ranks, [&](std::byte* memory) {
    for (const DType dtype : all_types) {
      for (const std::int64_t size : sizes) {
        if (size > sizes[6]) continue;
        const View view{memory, dtype, size * ranks};
        fill(view, [&](std::int64_t i) { return value_of(communicator.rank(), i); });
        communicator.reduce_scatter(view, Reduction::sum, stream);
        stream.synchronize();
        const std::int64_t first = communicator.rank() * size;
        compare(
            view.part(first, size), [&](std::int64_t i) { return reduced(Reduction::sum, ranks, first + i); },
            "reduce_scatter");
      }
    }
  });
}

void all_gather(Communicator& communicator) {
  ImmediateStream stream;
  const int ranks = communicator.size();
  on_both_kinds_of_memory(communicator, sizes[6] * 8 * ranks, [&](std::byte* memory) {
    for (const DType dtype : all_types) {
      for (const std::int64_t size : sizes) {
        if (size > sizes[6]) continue;
        const View view{memory, dtype, size * ranks};
        fill(view, [&](std::int64_t i) {
          return size == 0 || i / size != communicator.rank() ? 99 : value_of(communicator.rank(), i);
        });
        communicator.all_gather(view, stream);
        stream.synchronize();
        compare(
            view, [&](std::int64_t i) { return value_of(static_cast<int>(i / size), i); }, "all_gather");
      }
    }
  });
}

void all_to_all(Communicator& communicator) {
  ImmediateStream stream;
  const int ranks = communicator.size();
  for (const std::int64_t size : sizes) {
    if (size > sizes[6]) continue;
    std::vector<float> received(size * ranks, -1.0f);
    on_both_kinds_of_memory(communicator, size * 4 * ranks, [&](std::byte* memory) {
      const View send{memory, DType::float32, size * ranks};
      fill(send, [&](std::int64_t i) { return value_of(communicator.rank(), i); });
      const View receive{received.data(), DType::float32, size * ranks};
      communicator.all_to_all(send, receive, stream);
      stream.synchronize();
      compare(
          receive,
          [&](std::int64_t i) { return value_of(static_cast<int>(i / size), communicator.rank() * size + i % size); },
          "all_to_all");
    });
  }
}

void broadcast(Communicator& communicator) {
  ImmediateStream stream;
  for (int root = 0; root < communicator.size(); ++root) {
    on_both_kinds_of_memory(communicator, sizes[7] * 4, [&](std::byte* memory) {
      for (const std::int64_t size : sizes) {
        const View view{memory, DType::float32, size};
        fill(view, [&](std::int64_t i) { return value_of(communicator.rank(), i); });
        communicator.broadcast(view, root, stream);
        stream.synchronize();
        compare(
            view, [&](std::int64_t i) { return value_of(root, i); }, "broadcast");
      }
    });
  }
}

// A pipeline: each rank adds its number and passes on; rank 0 starts.
void send_and_receive(Communicator& communicator) {
  ImmediateStream stream;
  const int rank = communicator.rank();
  for (const std::int64_t size : sizes) {
    std::vector<float> values(size);
    const View view{values.data(), DType::float32, size};
    fill(view, [&](std::int64_t i) { return value_of(0, i); });
    if (rank > 0) {
      fill(view, [](std::int64_t) { return -1; });
      communicator.receive(view, rank - 1, stream);
      stream.synchronize();
    }
    compare(
        view, [&](std::int64_t i) { return value_of(0, i) + rank * (rank - 1) / 2; }, "receive");
    for (float& value : values) value += static_cast<float>(rank);
    if (rank + 1 < communicator.size()) communicator.send(view, rank + 1, stream);
    stream.synchronize();
  }
}

// Many calls queued at once on a thread of its own: more than the communicator keeps descriptors for.
void asynchronous(Communicator& communicator) {
  cpu::ThreadStream stream;
  constexpr std::int64_t buckets = 300;
  constexpr std::int64_t size = 1001;
  const Memory memory = communicator.allocate(buckets * size * 4);
  const View all{memory.get(), DType::float32, buckets * size};
  fill(all, [&](std::int64_t i) { return value_of(communicator.rank(), i); });
  for (std::int64_t bucket = 0; bucket < buckets; ++bucket) {
    communicator.all_reduce(all.part(bucket * size, size), Reduction::sum, stream);
    if (bucket % 50 == 0) communicator.barrier(stream);
  }
  stream.synchronize();
  compare(
      all, [&](std::int64_t i) { return reduced(Reduction::sum, communicator.size(), i); }, "asynchronous all_reduce");
}

void split(Communicator& communicator) {
  ImmediateStream stream;
  const int rank = communicator.rank();
  const int ranks = communicator.size();
  const std::unique_ptr<Communicator> half = communicator.split(rank % 2, -rank);  // reversed
  int expected_sum = 0;
  int members = 0;
  int after = 0;
  for (int other = rank % 2; other < ranks; other += 2) {
    expected_sum += other;
    ++members;
    if (other > rank) ++after;
  }
  expect(half->size() == members && half->rank() == after, "rank and size after a split");
  std::int32_t sum = rank;
  half->all_reduce({&sum, DType::int32, 1}, Reduction::sum, stream);
  stream.synchronize();
  expect(sum == expected_sum, "a split communicator sums over its own ranks");
  const Memory memory = half->allocate(sizes[6] * 4);
  const View view{memory.get(), DType::float32, sizes[6]};
  fill(view, [&](std::int64_t i) { return value_of(rank, i); });
  half->all_reduce(view, Reduction::sum, stream);
  communicator.barrier(stream);
  stream.synchronize();
  compare(
      view,
      [&](std::int64_t i) {
        int all = 0;
        for (int other = rank % 2; other < ranks; other += 2) all += value_of(other, i);
        return all;
      },
      "all_reduce after a split");
}

void memory_comes_and_goes(Communicator& communicator) {
  ImmediateStream stream;
  for (int round = 0; round < 20; ++round) {
    const Memory memory = communicator.allocate(40000);
    const View view{memory.get(), DType::float32, 10000};
    compare(
        view, [](std::int64_t) { return 0; }, "fresh memory");
    expect(reinterpret_cast<std::uintptr_t>(memory.get()) % 64 == 0, "memory is aligned");
    fill(view, [&](std::int64_t i) { return value_of(communicator.rank(), i); });
    communicator.all_reduce(view, Reduction::sum, stream);
    stream.synchronize();
    compare(
        view, [&](std::int64_t i) { return reduced(Reduction::sum, communicator.size(), i); }, "all_reduce");
  }
}

}  // namespace

const std::vector<Case>& cases() {
  static const std::vector<Case> list = {{"all_reduce", all_reduce},
                                         {"same bits everywhere", same_bits},
                                         {"reduce_scatter", reduce_scatter},
                                         {"all_gather", all_gather},
                                         {"all_to_all", all_to_all},
                                         {"broadcast", broadcast},
                                         {"send and receive", send_and_receive},
                                         {"asynchronous", asynchronous},
                                         {"split", split},
                                         {"memory comes and goes", memory_comes_and_goes}};
  return list;
}

}  // namespace trainctl::conformance
