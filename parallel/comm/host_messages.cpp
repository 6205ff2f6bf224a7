// Ring buffers in memfd files, which the other process opens through /proc; waiting ranks sleep on futexes.
#include "parallel/comm/host_messages.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>

#include "core/base/error.h"
#include "core/base/format.h"

namespace trainctl {

namespace {

constexpr std::int64_t smallest_ring = 64 << 10, largest_ring = 16 << 20;
// The number of messages of the usual size that a ring holds: the messages of one micro-batch and of the next one.
constexpr std::int64_t messages_in_ring = 4;
// How long a waiting rank sleeps before it checks whether the peer is still there.
constexpr std::chrono::milliseconds check_interval{100};

// Sleeps while the word has this value, at most for `check_interval`.
void sleep_while(const std::atomic<std::uint32_t>& word, std::uint32_t value) {
  const timespec limit{0, std::chrono::nanoseconds(check_interval).count()};
  syscall(SYS_futex, &word, FUTEX_WAIT, value, &limit, nullptr, 0);
}

// Changes the word and wakes the threads that sleep on its old value.
void pulse(std::atomic<std::uint32_t>& word) {
  word.fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

// The ring of the messages from one rank to another, in the memory of the sender. Counters only grow: byte n is stored
// at offset (n - start) % capacity of the file.
struct alignas(128) HostMessages::Ring {
  std::atomic<std::uint64_t> written;
  std::atomic<std::uint32_t> write_pulse;
  std::int64_t capacity;  // this and the members below describe the current file; written before `written` grows
  std::uint64_t start;
  std::int32_t process, file;
  std::uint32_t files;  // number of files so far
  alignas(128) std::atomic<std::uint64_t> read;
  std::atomic<std::uint32_t> read_pulse;
};

struct alignas(128) HostMessages::Block {
  std::atomic<bool> gone;
};

// A ring's file as mapped in this process.
struct HostMessages::Mapped {
  std::byte* memory = nullptr;
  std::int64_t capacity = 0;
  std::uint64_t start = 0;
  std::uint32_t files = 0;
  int file = -1;  // file descriptor; only the sender keeps it open

  Mapped() = default;
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  Mapped(Mapped&&) = delete;
  ~Mapped() { release(); }
  void release() {
    if (memory != nullptr) munmap(memory, static_cast<std::size_t>(capacity));
    if (file >= 0) close(file);
    memory = nullptr;
    file = -1;
  }
  // Returns the number of contiguous bytes in the file from byte `position` on, at most `limit`.
  std::int64_t contiguous(std::uint64_t position, std::int64_t limit) const {
    return std::min(limit,
                    capacity - static_cast<std::int64_t>((position - start) % static_cast<std::uint64_t>(capacity)));
  }
  std::byte* at(std::uint64_t position) const {
    return memory + (position - start) % static_cast<std::uint64_t>(capacity);
  }
};

// A wait for the peer of one message.
class HostMessages::MessageWait {
 public:
  MessageWait(const Call& call, const Block& peer, int world_rank, Attendance& attendance)
      : call_(call), peer_(peer), world_rank_(world_rank), attendance_(attendance), wait_(attendance) {}

  // Sleeps while the word has the value that was read before the last unsuccessful check.
  void sleep(const std::atomic<std::uint32_t>& word, std::uint32_t value) {
    if (peer_.gone.load(std::memory_order_relaxed)) attendance_.report_gone(describe(call_), world_rank_);
    if (!wait_.goes_on()) attendance_.report_missing(describe(call_), {world_rank_});
    sleep_while(word, value);
  }

 private:
  const Call& call_;
  const Block& peer_;
  int world_rank_;
  Attendance& attendance_;
  PeerWait wait_;
};

std::int64_t HostMessages::base_bytes(int ranks) {
  return static_cast<std::int64_t>(sizeof(Block) + static_cast<std::size_t>(ranks) * sizeof(Ring));
}

std::int64_t HostMessages::buffered_bytes() { return largest_ring / messages_in_ring; }

HostMessages::HostMessages(int rank, std::vector<std::byte*> bases, std::vector<int> world_ranks,
                           Attendance& attendance)
    : rank_(rank),
      bases_(std::move(bases)),
      world_ranks_(std::move(world_ranks)),
      attendance_(attendance),
      sending_(bases_.size()),
      receiving_(bases_.size()) {}

HostMessages::~HostMessages() = default;

HostMessages::Block& HostMessages::block(int rank) const {
  return *reinterpret_cast<Block*>(bases_[static_cast<std::size_t>(rank)]);
}

HostMessages::Ring& HostMessages::ring(int from, int to) const {
  return reinterpret_cast<Ring*>(bases_[static_cast<std::size_t>(from)] + sizeof(Block))[to];
}

void HostMessages::leave() { block(rank_).gone.store(true, std::memory_order_release); }

void HostMessages::send(const Call& call, int peer) {
  Ring& to = ring(rank_, peer);
  const auto p = static_cast<std::size_t>(peer);
  Mapped& mapped = sending_[p];
  MessageWait wait(call, block(peer), world_ranks_[p], attendance_);
  try {
    const std::int64_t bytes = call.data.bytes();
    const bool is_empty = to.read.load(std::memory_order_acquire) == to.written.load(std::memory_order_relaxed);
    if (mapped.memory == nullptr || (bytes > mapped.capacity / messages_in_ring && is_empty)) {
      make_ring(to, mapped, bytes);
    }
    write(to, mapped, &bytes, sizeof bytes, wait);
    write(to, mapped, call.data.data, bytes, wait);
  } catch (...) {
    leave();
    throw;
  }
}

void HostMessages::receive(const Call& call, int peer) {
  Ring& from = ring(peer, rank_);
  Mapped& mapped = receiving_[static_cast<std::size_t>(peer)];
  MessageWait wait(call, block(peer), world_ranks_[static_cast<std::size_t>(peer)], attendance_);
  try {
    std::int64_t bytes = 0;
    read(from, mapped, &bytes, sizeof bytes, wait);
    if (bytes != call.data.bytes()) {
      throw Error(ErrorKind::internal, format("{}: rank {} sends {} bytes", describe(call),
                                              world_ranks_[static_cast<std::size_t>(peer)], bytes));
    }
    read(from, mapped, call.data.data, bytes, wait);
  } catch (...) {
    leave();
    throw;
  }
}

// Makes a file for messages of this size, unless the existing file is large enough. An existing file must be empty.
void HostMessages::make_ring(Ring& ring, Mapped& mapped, std::int64_t bytes) {
  const auto wanted = std::bit_ceil(static_cast<std::uint64_t>(std::min(messages_in_ring * bytes, largest_ring)));
  const std::int64_t capacity = std::clamp(static_cast<std::int64_t>(wanted), smallest_ring, largest_ring);
  if (capacity <= mapped.capacity) return;
  mapped.release();
  mapped.file = memfd_create("trainctl-messages", MFD_CLOEXEC);
  const int shortage = mapped.file < 0 ? errno : posix_fallocate(mapped.file, 0, capacity);
  void* memory = shortage != 0 ? MAP_FAILED
                               : mmap(nullptr, static_cast<std::size_t>(capacity), PROT_READ | PROT_WRITE,
                                      MAP_SHARED | MAP_POPULATE, mapped.file, 0);
  if (memory == MAP_FAILED) {
    throw Error(ErrorKind::resource, format("cannot allocate {} bytes of shared memory for messages: {}", capacity,
                                            std::strerror(shortage != 0 ? shortage : errno)));
  }
  mapped.memory = static_cast<std::byte*>(memory);
  mapped.capacity = ring.capacity = capacity;
  mapped.start = ring.start = ring.written.load(std::memory_order_relaxed);
  ring.process = getpid();
  ring.file = mapped.file;
  ++ring.files;
}

// Maps the sender's current file.
void HostMessages::open_ring(const Ring& ring, Mapped& mapped) const {
  if (mapped.files == ring.files) return;
  mapped.release();
  const int file = open(format("/proc/{}/fd/{}", ring.process, ring.file).c_str(), O_RDWR | O_CLOEXEC);
  void* memory =
      file < 0 ? MAP_FAILED
               : mmap(nullptr, static_cast<std::size_t>(ring.capacity), PROT_READ, MAP_SHARED | MAP_POPULATE, file, 0);
  const int error = errno;
  if (file >= 0) close(file);
  if (memory == MAP_FAILED) {
    throw Error(ErrorKind::resource,
                format("cannot open another rank's memory for messages: {}", std::strerror(error)));
  }
  mapped.memory = static_cast<std::byte*>(memory);
  mapped.capacity = ring.capacity;
  mapped.start = ring.start;
  mapped.files = ring.files;
}

void HostMessages::write(Ring& ring, Mapped& mapped, const void* data, std::int64_t bytes, MessageWait& wait) {
  const auto* from = static_cast<const std::byte*>(data);
  std::uint64_t position = ring.written.load(std::memory_order_relaxed);
  while (bytes > 0) {
    const std::uint32_t seen = ring.read_pulse.load(std::memory_order_acquire);
    const auto held = static_cast<std::int64_t>(position - ring.read.load(std::memory_order_acquire));
    const std::int64_t count = mapped.contiguous(position, std::min(bytes, mapped.capacity - held));
    if (count == 0) {
      wait.sleep(ring.read_pulse, seen);
      continue;
    }
    std::memcpy(mapped.at(position), from, static_cast<std::size_t>(count));
    from += count;
    bytes -= count;
    position += static_cast<std::uint64_t>(count);
    ring.written.store(position, std::memory_order_release);
    pulse(ring.write_pulse);
  }
}

void HostMessages::read(Ring& ring, Mapped& mapped, void* data, std::int64_t bytes, MessageWait& wait) {
  auto* to = static_cast<std::byte*>(data);
  std::uint64_t position = ring.read.load(std::memory_order_relaxed);
  while (bytes > 0) {
    const std::uint32_t seen = ring.write_pulse.load(std::memory_order_acquire);
    const auto available = static_cast<std::int64_t>(ring.written.load(std::memory_order_acquire) - position);
    if (available == 0) {
      wait.sleep(ring.write_pulse, seen);
      continue;
    }
    open_ring(ring, mapped);
    const std::int64_t count = mapped.contiguous(position, std::min(bytes, available));
    std::memcpy(to, mapped.at(position), static_cast<std::size_t>(count));
    to += count;
    bytes -= count;
    position += static_cast<std::uint64_t>(count);
    ring.read.store(position, std::memory_order_release);
    pulse(ring.read_pulse);
  }
}

}  // namespace trainctl
