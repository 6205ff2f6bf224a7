// Creates the file of a flight record and writes events to its lines.
#include "core/base/flight_record.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/flight_layout.h"
#include "core/base/format.h"

namespace trainctl {
namespace {

using flight::Word;

// Powers of two, so that a position in a ring needs no division.
constexpr std::size_t long_ring = 1024;  // events of a line that trains or communicates
constexpr std::size_t short_ring = 128;  // events of other lines

std::size_t capacity_of(FlightThread thread) {
  return thread == FlightThread::training || thread == FlightThread::communication ? long_ring : short_ring;
}

constexpr std::size_t largest_file = flight::header_bytes + flight::most_lines * flight::ring_bytes(long_ring);

template <class Clock>
std::int64_t nanoseconds_of() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

std::int64_t monotonic_now() { return nanoseconds_of<std::chrono::steady_clock>(); }

std::uint64_t load(std::byte* word) {
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(word)).load(std::memory_order_relaxed);
}

// Other processes see the stores of one thread in their order.
void store(std::byte* word, std::uint64_t value) {
  std::atomic_ref(*reinterpret_cast<std::uint64_t*>(word)).store(value, std::memory_order_release);
}

// The beginning of a text, in at most `limit` bytes, that does not end within a character.
std::string_view cut(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return text;
  std::size_t end = limit;
  for (int back = 0; back < 4 && end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80; ++back) --end;
  return text.substr(0, end);
}

template <std::size_t size>
void copy_text(char (&to)[size], std::string_view text) {
  const std::string_view part = cut(text, size - 1);
  std::copy(part.begin(), part.end(), to);
  to[part.size()] = '\0';
}

}  // namespace

// The mapped file. Lines are added at the end of the file, so that unused lines cost nothing.
class FlightFile {
 public:
  // Takes the descriptor of a new file, and closes it also if the constructor throws.
  FlightFile(const std::string& path, int descriptor) : descriptor_(descriptor) {
    if (const int error = grow(flight::header_bytes); error != 0) fail(path, "cannot be extended", error);
    void* const at = mmap(nullptr, largest_file, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
    if (at == MAP_FAILED) fail(path, "cannot be mapped", errno);
    data_ = static_cast<std::byte*>(at);
  }
  ~FlightFile() {
    munmap(data_, largest_file);
    close(descriptor_);
  }
  FlightFile(const FlightFile&) = delete;
  FlightFile& operator=(const FlightFile&) = delete;

  flight::Header& header() { return *reinterpret_cast<flight::Header*>(data_); }
  std::byte* ring(int line) { return data_ + header().table[line].offset; }
  std::size_t capacity(int line) { return header().table[line].capacity; }

  // Returns the number of a line; -1 if the file is full.
  int add(FlightThread thread, std::string_view name, const FlightGroup& group) {
    const std::lock_guard lock(mutex_);
    const int line = free_line(thread);
    if (line < 0) {
      note_lost(group);
      return -1;
    }
    flight::LineHeader& entry = header().table[line];
    copy_text(entry.name, name);
    entry.group = group;
    is_used_[static_cast<std::size_t>(line)] = true;
    std::atomic_ref count(header().lines);
    count.store(std::max(count.load(std::memory_order_relaxed), static_cast<std::uint32_t>(line) + 1),
                std::memory_order_release);
    return line;
  }

  void release(int line) {
    const std::lock_guard lock(mutex_);
    is_used_[static_cast<std::size_t>(line)] = false;
  }

 private:
  // Returns a line that was never used, or else one whose owner has ended.
  int free_line(FlightThread thread) {
    const auto lines = static_cast<int>(header().lines);
    const std::size_t bytes = flight::ring_bytes(capacity_of(thread));
    if (lines < flight::most_lines && grow(size_ + bytes) == 0) {
      header().table[lines] = {static_cast<std::uint32_t>(thread),
                               static_cast<std::uint32_t>(capacity_of(thread)),
                               size_ - bytes,
                               {},
                               {},
                               0};
      return lines;
    }
    for (int line = 0; line < lines; ++line) {
      if (is_used_[static_cast<std::size_t>(line)] || header().table[line].thread != static_cast<std::uint32_t>(thread))
        continue;
      note_lost(header().table[line].group);
      store(ring(line), 0);
      store(ring(line) + flight::messages_offset, 0);
      return line;
    }
    return -1;
  }

  // Notes that the events of a communicator are missing.
  void note_lost(const FlightGroup& group) {
    if (group.count > 0) std::atomic_ref(header().lost_lines).fetch_add(1, std::memory_order_relaxed);
  }

  // Extends the file, with its blocks: writing to a mapped page without a block on a full disk ends the process.
  // Returns the errno of a failure.
  int grow(std::size_t size) {
    const int error = posix_fallocate(descriptor_, 0, static_cast<off_t>(size));
    if (error == 0) size_ = size;
    return error;
  }
  [[noreturn]] void fail(const std::string& path, std::string_view what, int error) {
    close(descriptor_);
    throw_file_error(path, what, error, {ErrorKind::resource});
  }

  int descriptor_ = -1;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::mutex mutex_;
  std::array<bool, flight::most_lines> is_used_{};
};

FlightLine::FlightLine(std::shared_ptr<FlightFile> file, int index)
    : file_(std::move(file)), index_(index), ring_(file_->ring(index)), capacity_(file_->capacity(index)) {}

FlightLine::~FlightLine() {
  if (ring_ == nullptr) return;
  leave();
  file_->release(index_);
}

FlightLine::FlightLine(FlightLine&& other) noexcept
    : file_(std::move(other.file_)),
      index_(other.index_),
      ring_(std::exchange(other.ring_, nullptr)),
      capacity_(other.capacity_) {}

FlightLine& FlightLine::operator=(FlightLine&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(index_, other.index_);
  std::swap(ring_, other.ring_);
  std::swap(capacity_, other.capacity_);
  return *this;
}

namespace {

std::byte* event_at(std::byte* ring, std::uint64_t number, std::uint64_t capacity) {
  return ring + flight::ring_header_bytes + (number & (capacity - 1)) * flight::event_bytes;
}

}  // namespace

void FlightLine::enter(const FlightEntry& entry) {
  if (ring_ == nullptr) return;
  const std::uint64_t entered = load(ring_);
  std::byte* const event = event_at(ring_, entered, capacity_);
  const auto set = [event](std::size_t word, std::uint64_t value) { store(event + word * 8, value); };
  set(Word::begin, static_cast<std::uint64_t>(monotonic_now()));
  set(Word::end, 0);
  set(Word::step, static_cast<std::uint64_t>(entry.step));
  set(Word::activity_number,
      flight::pack(static_cast<std::uint32_t>(entry.activity), static_cast<std::uint32_t>(entry.number)));
  set(Word::message_peer,
      flight::pack(static_cast<std::uint32_t>(entry.message), static_cast<std::uint32_t>(entry.peer)));
  const std::string_view text = cut(entry.text, flight_text_bytes);
  // The text ends with a zero byte unless it has its full length; words after that byte keep old values.
  const std::size_t words = std::min(text.size() / 8 + 1, flight::text_words);
  std::array<std::uint64_t, flight::text_words> padded{};
  std::memcpy(padded.data(), text.data(), text.size());
  for (std::size_t i = 0; i < words; ++i) set(Word::first_of_text + i, padded[i]);
  std::byte* const messages = ring_ + flight::messages_offset;
  if (entry.message != FlightMessage::none) store(messages, load(messages) + 1);
  store(ring_, entered + 1);
}

void FlightLine::leave() {
  const std::uint64_t entered = ring_ == nullptr ? 0 : load(ring_);
  if (entered == 0) return;
  std::byte* const end = event_at(ring_, entered - 1, capacity_) + Word::end * 8;
  if (load(end) == 0) store(end, static_cast<std::uint64_t>(monotonic_now()));
}

FlightRecord::FlightRecord(const std::string& folder, int rank, int ranks, std::string_view host)
    : path_(folder + "/" + flight_file_name(rank)) {
  unlink(path_.c_str());
  const int descriptor = open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (descriptor < 0) throw_file_error(path_, "cannot be created", errno, {ErrorKind::resource});
  file_ = std::make_shared<FlightFile>(path_, descriptor);
  flight::Header& header = file_->header();
  header.rank = rank;
  header.ranks = ranks;
  header.process = getpid();
  header.wall_offset = nanoseconds_of<std::chrono::system_clock>() - monotonic_now();
  copy_text(header.host, host);
  header.version = flight::version;
  training_ = line(FlightThread::training, "main");
  std::copy(std::begin(flight::magic), std::end(flight::magic), header.magic);  // last: now the header is valid
}

FlightLine FlightRecord::line(FlightThread thread, std::string_view name, const FlightGroup& group) {
  const int index = file_->add(thread, name, group);
  return index < 0 ? FlightLine() : FlightLine(file_, index);
}

FlightGroup flight_group(const std::vector<int>& world_ranks) {
  if (world_ranks.empty()) return {};
  const int stride = world_ranks.size() > 1 ? world_ranks[1] - world_ranks[0] : 1;
  for (std::size_t i = 1; i < world_ranks.size(); ++i) {
    if (world_ranks[i] - world_ranks[i - 1] != stride) return {};
  }
  return {world_ranks.front(), stride, static_cast<std::int32_t>(world_ranks.size())};
}

std::string flight_file_name(int rank) { return format("rank-{:05}", rank); }

}  // namespace trainctl
