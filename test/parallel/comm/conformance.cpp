// The conformance cases. Values are functions of rank and index whose sums are exact, so that a loop in double is the
// reference.
#include "test/parallel/comm/conformance.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>

#include "core/base/hash.h"
#include "core/base/random.h"

namespace trainctl::conformance {

namespace {

constexpr std::int64_t sizes[] = {0, 1, 3, 7, 1023, 5000, 100003, (1 << 20) + 3};
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

// A subject whose memory cannot be read directly: values are copied through the host.
class Rank {
 public:
  explicit Rank(const Subject& subject)
      : communicator(subject.communicator), backend(subject.backend), stream(subject.stream) {}

  int rank() const { return communicator.rank(); }
  int size() const { return communicator.size(); }

  template <class Value>
  void fill(View view, Value value) const {
    std::vector<std::byte> values(static_cast<std::size_t>(view.bytes()));
    const View there{values.data(), view.dtype, view.count};
    for (std::int64_t i = 0; i < view.count; ++i) store(there, i, value(i));
    backend.copy(view.data, values.data(), view.bytes(), stream);
    stream.synchronize();
  }

  // Reads a view after all work that was queued on the stream.
  std::vector<std::byte> read(View view) const {
    std::vector<std::byte> values(static_cast<std::size_t>(view.bytes()));
    backend.copy(values.data(), view.data, view.bytes(), stream);
    stream.synchronize();
    return values;
  }

  template <class Value>
  void compare(View view, Value value, const std::string& what) const {
    std::vector<std::byte> values = read(view);
    const View there{values.data(), view.dtype, view.count};
    for (std::int64_t i = 0; i < view.count; ++i) {
      if (load(there, i) == value(i)) continue;
      expect(false, what + " " + std::string(name_of(view.dtype)) + " of " + std::to_string(view.count) + " at " +
                        std::to_string(i) + ": " + std::to_string(load(there, i)) + " for " + std::to_string(value(i)));
    }
  }

  // Runs a test on memory of the communicator and of the backend, at an offset of 8 bytes.
  void on_both_kinds_of_memory(std::int64_t bytes, const std::function<void(std::byte*)>& test) const {
    constexpr std::int64_t offset = 8;
    const Memory shared = communicator.allocate(bytes + offset);
    test(shared.get() + offset);
    const Memory own = backend.allocate(bytes + offset);
    test(own.get() + offset);
  }

  Communicator& communicator;
  Backend& backend;
  Stream& stream;
};

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

void all_reduce(const Subject& subject) {
  const Rank self(subject);
  self.on_both_kinds_of_memory(sizes[7] * 8, [&](std::byte* memory) {
    for (const DType dtype : all_types) {
      for (const std::int64_t size : sizes) {
        for (const Reduction reduction : {Reduction::sum, Reduction::minimum, Reduction::maximum}) {
          if (size == sizes[7] && reduction != Reduction::sum) continue;
          const View view{memory, dtype, size};
          self.fill(view, [&](std::int64_t i) { return value_of(self.rank(), i); });
          self.communicator.all_reduce(view, reduction, self.stream);
          self.compare(
              view, [&](std::int64_t i) { return reduced(reduction, self.size(), i); }, "all_reduce");
        }
      }
    }
  });
}

// Sums that depend on the order of additions: they must have the same bits on all ranks and in both kinds of memory.
void same_bits(const Subject& subject) {
  const Rank self(subject);
  std::vector<std::int64_t> hashes;
  self.on_both_kinds_of_memory(sizes[6] * 4, [&](std::byte* memory) {
    for (const DType dtype : {DType::float32, DType::bfloat16}) {
      for (const std::int64_t size : sizes) {
        if (size > sizes[6]) continue;
        const View view{memory, dtype, size};
        self.fill(view, [&](std::int64_t i) {
          return uniform01(philox({static_cast<std::uint32_t>(i), 3, 3, 3},
                                  {static_cast<std::uint32_t>(self.rank()), 5})[1]) -
                 0.3;
        });
        self.communicator.all_reduce(view, Reduction::sum, self.stream);
        const std::vector<std::byte> values = self.read(view);
        hashes.push_back(static_cast<std::int64_t>(xxh3(values.data(), values.size())));
      }
    }
  });
  for (std::size_t i = 0; i < hashes.size() / 2; ++i) {
    expect(hashes[i] == hashes[i + hashes.size() / 2], "equal bits in both kinds of memory");
  }
  const auto count = static_cast<std::int64_t>(hashes.size());
  const Memory memory = self.communicator.allocate(2 * count * 8);
  const View minima{memory.get(), DType::int64, count};
  const View maxima = View{memory.get(), DType::int64, 2 * count}.slice(count, count);
  for (const View view : {minima, maxima}) self.backend.copy(view.data, hashes.data(), view.bytes(), self.stream);
  self.communicator.all_reduce(minima, Reduction::minimum, self.stream);
  self.communicator.all_reduce(maxima, Reduction::maximum, self.stream);
  expect(self.read(minima) == self.read(maxima), "equal bits on all ranks");
}

void reduce_scatter(const Subject& subject) {
  const Rank self(subject);
  const int ranks = self.size();
  self.on_both_kinds_of_memory(sizes[6] * 8 * ranks, [&](std::byte* memory) {
    for (const DType dtype : all_types) {
      for (const std::int64_t size : sizes) {
        if (size > sizes[6]) continue;
        const View view{memory, dtype, size * ranks};
        self.fill(view, [&](std::int64_t i) { return value_of(self.rank(), i); });
        self.communicator.reduce_scatter(view, Reduction::sum, self.stream);
        const std::int64_t first = self.rank() * size;
        self.compare(
            view.slice(first, size), [&](std::int64_t i) { return reduced(Reduction::sum, ranks, first + i); },
            "reduce_scatter");
      }
    }
  });
}

void all_gather(const Subject& subject) {
  const Rank self(subject);
  const int ranks = self.size();
  self.on_both_kinds_of_memory(sizes[6] * 8 * ranks, [&](std::byte* memory) {
    for (const DType dtype : all_types) {
      for (const std::int64_t size : sizes) {
        if (size > sizes[6]) continue;
        const View view{memory, dtype, size * ranks};
        self.fill(view,
                  [&](std::int64_t i) { return size == 0 || i / size != self.rank() ? 99 : value_of(self.rank(), i); });
        self.communicator.all_gather(view, self.stream);
        self.compare(
            view, [&](std::int64_t i) { return value_of(static_cast<int>(i / size), i); }, "all_gather");
      }
    }
  });
}

void all_to_all(const Subject& subject) {
  const Rank self(subject);
  const int ranks = self.size();
  const Memory received = self.backend.allocate(sizes[7] * 4 * ranks);
  for (const std::int64_t size : sizes) {
    self.on_both_kinds_of_memory(size * 4 * ranks, [&](std::byte* memory) {
      const View send{memory, DType::float32, size * ranks};
      self.fill(send, [&](std::int64_t i) { return value_of(self.rank(), i); });
      const View receive{received.get(), DType::float32, size * ranks};
      self.fill(receive, [](std::int64_t) { return -1; });
      self.communicator.all_to_all(send, receive, self.stream);
      self.compare(
          receive, [&](std::int64_t i) { return value_of(static_cast<int>(i / size), self.rank() * size + i % size); },
          "all_to_all");
    });
  }
}

void broadcast(const Subject& subject) {
  const Rank self(subject);
  for (int root = 0; root < self.size(); ++root) {
    self.on_both_kinds_of_memory(sizes[7] * 4, [&](std::byte* memory) {
      for (const std::int64_t size : sizes) {
        const View view{memory, DType::float32, size};
        self.fill(view, [&](std::int64_t i) { return value_of(self.rank(), i); });
        self.communicator.broadcast(view, root, self.stream);
        self.compare(
            view, [&](std::int64_t i) { return value_of(root, i); }, "broadcast");
      }
    });
  }
}

// A pipeline: rank 0 sends values; each rank adds its number to the received values and sends them to the next rank.
void send_and_receive(const Subject& subject) {
  const Rank self(subject);
  const int rank = self.rank();
  const Memory memory = self.backend.allocate(sizes[7] * 4);
  for (const std::int64_t size : sizes) {
    const View view{memory.get(), DType::float32, size};
    self.fill(view, [](std::int64_t) { return -1; });
    const auto arrived = [&](std::int64_t i) { return value_of(0, i) + rank * (rank - 1) / 2; };
    if (rank > 0) {
      self.communicator.receive(view, rank - 1, self.stream);
      self.compare(view, arrived, "receive");
    }
    self.fill(view, [&](std::int64_t i) { return arrived(i) + rank; });
    if (rank + 1 < self.size()) self.communicator.send(view, rank + 1, self.stream);
    self.stream.synchronize();
  }
}

// Messages of many sizes, one after the other; one is larger than any buffer between the ranks. Each rank sends the
// messages that it received to the next rank.
void many_messages(const Subject& subject) {
  const std::unique_ptr<Stream> stream = subject.backend.asynchronous_stream();
  const Rank self({subject.communicator, subject.backend, *stream});
  const int rank = self.rank();
  constexpr std::int64_t counts[] = {3, 70'001, 1, 5'000'003, 0, 200'000, 12, 900'007, 900'007, 900'007, 2, 33};
  std::int64_t total = 0;
  for (const std::int64_t count : counts) total += count;
  const Memory memory = self.backend.allocate(total * 4);
  const View all{memory.get(), DType::float32, total};
  const auto exchange = [&](auto call) {
    std::int64_t first = 0;
    for (const std::int64_t count : counts) {
      call(all.slice(first, count));
      first += count;
    }
    stream->synchronize();
  };
  self.fill(all, [&](std::int64_t i) { return rank == 0 ? value_of(0, i) : -1; });
  if (rank > 0) {
    exchange([&](View message) { self.communicator.receive(message, rank - 1, *stream); });
    self.compare(
        all, [](std::int64_t i) { return value_of(0, i); }, "many messages");
  }
  if (rank + 1 < self.size()) {
    exchange([&](View message) { self.communicator.send(message, rank + 1, *stream); });
  }
}

// Queues more calls than the communicator has descriptors, while the host continues.
void asynchronous(const Subject& subject) {
  const std::unique_ptr<Stream> stream = subject.backend.asynchronous_stream();
  const Rank self({subject.communicator, subject.backend, *stream});
  constexpr std::int64_t buckets = 300;
  constexpr std::int64_t size = 1001;
  const Memory memory = self.communicator.allocate(buckets * size * 4);
  const View all{memory.get(), DType::float32, buckets * size};
  self.fill(all, [&](std::int64_t i) { return value_of(self.rank(), i); });
  for (std::int64_t bucket = 0; bucket < buckets; ++bucket) {
    self.communicator.all_reduce(all.slice(bucket * size, size), Reduction::sum, *stream);
    if (bucket % 50 == 0) self.communicator.barrier(*stream);
  }
  self.compare(
      all, [&](std::int64_t i) { return reduced(Reduction::sum, self.size(), i); }, "asynchronous all_reduce");
}

// Runs a recorded all-reduce three times: the result is a sum of sums of sums.
void recorded(const Subject& subject) {
  const Rank self(subject);
  if (!self.communicator.recordable()) return;
  constexpr std::int64_t size = 1023;
  const Memory memory = self.communicator.allocate(size * 4);
  const View view{memory.get(), DType::float32, size};
  const auto queue = [&] { self.communicator.all_reduce(view, Reduction::sum, self.stream); };
  queue();  // connections are made outside of recordings
  self.stream.synchronize();
  const std::unique_ptr<Recording> recording = self.backend.record(self.stream, queue);
  expect(recording != nullptr || !self.backend.asynchronous(), "all_reduce is recorded");
  if (recording == nullptr) return;
  self.fill(view, [&](std::int64_t i) { return value_of(self.rank(), i); });
  for (int round = 0; round < 3; ++round) recording->run(self.stream);
  self.compare(
      view, [&](std::int64_t i) { return reduced(Reduction::sum, self.size(), i) * self.size() * self.size(); },
      "recorded all_reduce");
}

void split(const Subject& subject) {
  const Rank self(subject);
  const int rank = self.rank();
  const int ranks = self.size();
  const std::unique_ptr<Communicator> half = self.communicator.split(rank % 2, -rank);  // ranks in reverse order
  int expected_sum = 0;
  int members = 0;
  int after = 0;
  for (int other = rank % 2; other < ranks; other += 2) {
    expected_sum += other;
    ++members;
    if (other > rank) ++after;
  }
  expect(half->size() == members && half->rank() == after, "rank and size after a split");
  const Memory memory = half->allocate(sizes[6] * 4);
  const View sum{memory.get(), DType::int32, 1};
  self.fill(sum, [&](std::int64_t) { return rank; });
  half->all_reduce(sum, Reduction::sum, self.stream);
  self.compare(
      sum, [&](std::int64_t) { return expected_sum; }, "a split communicator's own ranks");
  const View view{memory.get(), DType::float32, sizes[6]};
  self.fill(view, [&](std::int64_t i) { return value_of(rank, i); });
  half->all_reduce(view, Reduction::sum, self.stream);
  self.communicator.barrier(self.stream);
  self.compare(
      view,
      [&](std::int64_t i) {
        int all = 0;
        for (int other = rank % 2; other < ranks; other += 2) all += value_of(other, i);
        return all;
      },
      "all_reduce after a split");
}

void memory_is_allocated_repeatedly(const Subject& subject) {
  const Rank self(subject);
  for (int round = 0; round < 20; ++round) {
    const Memory memory = self.communicator.allocate(40000);
    const View view{memory.get(), DType::float32, 10000};
    self.compare(
        view, [](std::int64_t) { return 0; }, "fresh memory");
    expect(reinterpret_cast<std::uintptr_t>(memory.get()) % 64 == 0, "memory is aligned");
    self.fill(view, [&](std::int64_t i) { return value_of(self.rank(), i); });
    self.communicator.all_reduce(view, Reduction::sum, self.stream);
    self.compare(
        view, [&](std::int64_t i) { return reduced(Reduction::sum, self.size(), i); }, "all_reduce");
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
                                         {"many messages", many_messages},
                                         {"asynchronous", asynchronous},
                                         {"recorded", recorded},
                                         {"split", split},
                                         {"memory is allocated repeatedly", memory_is_allocated_repeatedly}};
  return list;
}

}  // namespace trainctl::conformance
