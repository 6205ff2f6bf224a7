// The layout of a flight record's file: a header, a table of lines, and for each line a ring of events. Numbers are
// little-endian.
//
// A ring never moves. `entered` counts the events that were entered, and event i lies at i modulo the capacity. An
// event is published by raising `entered`, so that a process that is killed in between leaves no half event.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/flight_record.h"

namespace trainctl::flight {

inline constexpr char magic[8] = {'T', 'C', 'F', 'L', 'I', 'G', 'H', 'T'};
inline constexpr std::uint32_t version = 1;
inline constexpr int most_lines = 32;
inline constexpr std::size_t host_bytes = 64, name_bytes = 32;

struct LineHeader {
  std::uint32_t thread;    // FlightThread
  std::uint32_t capacity;  // number of events of the ring
  std::uint64_t offset;    // of the ring in the file
  char name[name_bytes];   // ends with a zero byte
  FlightGroup group;
  std::uint32_t unused;
};

struct Header {
  char magic[8];
  std::uint32_t version;
  std::int32_t rank;
  std::int32_t ranks;
  std::int32_t process;
  std::int64_t wall_offset;  // nanoseconds to add to the monotonic clock's time for the time since 1970
  char host[host_bytes];     // ends with a zero byte
  std::uint32_t lines;       // number of valid entries of the table
  std::uint32_t lost_lines;  // number of communicators whose events are missing, since the file was full
  LineHeader table[most_lines];
};

// A ring begins with the number of events entered so far, and the number of messages among them, alone in a cache line.
inline constexpr std::size_t ring_header_bytes = 64;
inline constexpr std::size_t messages_offset = 8;

// An event as 64-bit words. The end is 0 if the next event ends this one.
enum Word : std::size_t { begin, end, step, activity_number, message_peer, first_of_text };
inline constexpr std::size_t text_words = flight_text_bytes / 8;
inline constexpr std::size_t event_words = Word::first_of_text + text_words;
inline constexpr std::size_t event_bytes = event_words * 8;

inline constexpr std::size_t ring_bytes(std::size_t capacity) {
  return (ring_header_bytes + capacity * event_bytes + 63) / 64 * 64;
}
inline constexpr std::size_t header_bytes = (sizeof(Header) + 63) / 64 * 64;

// Two 32-bit numbers in one word.
inline constexpr std::uint64_t pack(std::uint32_t low, std::uint32_t high) {
  return low | static_cast<std::uint64_t>(high) << 32;
}

}  // namespace trainctl::flight
