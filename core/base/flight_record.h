// The flight record of a rank: what each of its threads does now, and its last events, in a file that is kept after the
// process has ended.
//
// The file is mapped into memory, so that writing an event needs no system call, and the kernel keeps what a killed
// process has written. flight_state.h reads it, also while it is written.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace trainctl {

// What a thread does. The values are part of the file's format.
enum class Activity : std::uint32_t {
  starting,
  reading_data,      // a worker reads and prepares samples
  waiting_for_data,  // the training thread waits for a batch
  computing,
  communicating,  // inside a collective or a message
  updating,       // computing the update of the weights
  saving,
  evaluating,
  waiting_for_ranks,  // outside of a step, for example at the start; a rank that waits is in a collective
  ended,
};

// What a line's thread is there for. The values are part of the file's format.
enum class FlightThread : std::uint32_t { training, data, communication, saving };

// The world ranks of a communicator: first, first + stride, first + 2 * stride, ... A count of 0 means unknown.
struct FlightGroup {
  std::int32_t first = 0;
  std::int32_t stride = 1;
  std::int32_t count = 0;

  bool operator==(const FlightGroup&) const = default;
};

// The group of these ranks; a group with count 0 if their numbers have no common distance.
FlightGroup flight_group(const std::vector<int>& world_ranks);

// Whether an event is a message to or from one other rank. The values are part of the file's format.
enum class FlightMessage : std::uint32_t { none, send, receive };

// One entry of a line. Texts longer than flight_text_bytes are cut.
struct FlightEntry {
  Activity activity = Activity::starting;
  std::int64_t step = -1;   // number of the training step, from 1 as in the log; -1: none
  std::int32_t number = 0;  // position in the step: of an op, or of a call of a communicator
  std::string_view text;    // what exactly is done, for example "all_reduce of bucket 3 (conv5 ... fc1)"
  FlightMessage message = FlightMessage::none;
  std::int32_t peer = -1;  // the world rank of a message's other end
};
inline constexpr std::size_t flight_text_bytes = 96;

class FlightFile;

// The events of one thread, or of calls that follow one another on different threads. A line that was made by default
// drops what is written to it.
class FlightLine {
 public:
  FlightLine() = default;
  ~FlightLine();
  FlightLine(FlightLine&& other) noexcept;
  FlightLine& operator=(FlightLine&& other) noexcept;

  // Ends the event under way and begins the next one.
  void enter(const FlightEntry& entry);
  // Ends the event under way. Nothing is under way until the next enter().
  void leave();

 private:
  friend class FlightRecord;
  FlightLine(std::shared_ptr<FlightFile> file, int index);

  std::shared_ptr<FlightFile> file_;
  int index_ = -1;
  std::byte* ring_ = nullptr;  // the line's part of the mapped file; null: nothing is written
  std::uint64_t capacity_ = 0;
};

// The record of one rank, with one line for each thread. Several threads may call the functions.
class FlightRecord {
 public:
  // Creates the file flight_file_name(rank) in an existing folder, with access for this user only, and replaces a file
  // of the same name. Throws Error{resource} if the file cannot be created or if the disk is full.
  FlightRecord(const std::string& folder, int rank, int ranks, std::string_view host);

  // Returns a new line. If the file is full, returns a line that drops what is written to it. The record may end before
  // its lines. `name` tells the lines of one kind apart, for example "worker 2"; it is cut to 31 bytes.
  FlightLine line(FlightThread thread, std::string_view name, const FlightGroup& group = {});

  // The line of the rank's main thread, which trains.
  FlightLine& training() { return training_; }

  // The number of the training step that the rank has begun last since its start, from 1; -1: it has begun none.
  void set_step(std::int64_t step) { step_.store(step, std::memory_order_relaxed); }
  std::int64_t step() const { return step_.load(std::memory_order_relaxed); }

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::shared_ptr<FlightFile> file_;
  FlightLine training_;
  std::atomic<std::int64_t> step_{-1};
};

// An event that ends with the scope.
class FlightScope {
 public:
  FlightScope(FlightLine& line, const FlightEntry& entry) : line_(line) { line_.enter(entry); }
  ~FlightScope() { line_.leave(); }
  FlightScope(const FlightScope&) = delete;
  FlightScope& operator=(const FlightScope&) = delete;

 private:
  FlightLine& line_;
};

// "rank-00003" for rank 3.
std::string flight_file_name(int rank);

}  // namespace trainctl
