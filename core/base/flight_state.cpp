// Reads flight records by read(), not by a mapping: a file that is cut off while it is read ends in an error, not in a
// signal.
#include "core/base/flight_state.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/flight_layout.h"
#include "core/base/format.h"
#include "core/base/utf8.h"

namespace trainctl {
namespace {

using flight::Word;
using Words = std::array<std::uint64_t, flight::event_words>;

constexpr std::uint32_t largest_ring = 100'000;  // events; more are not plausible
constexpr std::int32_t most_ranks = 10'000'000;
// Times (in nanoseconds) and counts of a damaged file are clamped, so that their sums and differences do not overflow.
constexpr std::int64_t largest_value = std::int64_t{1} << 61;

[[noreturn]] void refuse(const std::string& path, std::string_view what) {
  throw Error(ErrorKind::data, SourceLocation{path}, what,
              "give the folder 'flight' of a run directory, with the records that the ranks of one run have written");
}

template <std::size_t size>
std::string text_of(const char (&bytes)[size]) {
  return valid_utf8(std::string_view(bytes, strnlen(bytes, size)));
}

flight::Header read_header(const InputFile& file) {
  flight::Header header{};
  if (file.size() < static_cast<std::int64_t>(sizeof(header))) {
    refuse(file.path(), "this is no flight record, or its end is missing");
  }
  file.read(0, &header, sizeof(header));
  if (std::memcmp(header.magic, flight::magic, sizeof(header.magic)) != 0) {
    refuse(file.path(), "this is no flight record");
  }
  if (header.version != flight::version) {
    refuse(file.path(), format("this flight record has version {}, and this program reads version {}", header.version,
                               flight::version));
  }
  const auto has_ranks = [&](const FlightGroup& group) {
    if (group.count <= 0) return group.count == 0;
    const std::int64_t last = group.first + std::int64_t{group.stride} * (group.count - 1);
    return std::min<std::int64_t>(group.first, last) >= 0 && std::max<std::int64_t>(group.first, last) < header.ranks;
  };
  const auto is_valid = [&](const flight::LineHeader& line) {
    return line.capacity > 0 && line.capacity <= largest_ring && line.offset % 64 == 0 &&
           line.offset >= flight::header_bytes && line.offset <= static_cast<std::uint64_t>(file.size()) &&
           flight::ring_bytes(line.capacity) <= static_cast<std::uint64_t>(file.size()) - line.offset &&
           line.thread <= static_cast<std::uint32_t>(FlightThread::saving) && line.group.count <= header.ranks &&
           has_ranks(line.group);
  };
  if (header.lines > flight::most_lines || header.ranks < 1 || header.ranks > most_ranks || header.rank < 0 ||
      header.rank >= header.ranks || !std::all_of(header.table, header.table + header.lines, is_valid)) {
    refuse(file.path(), "the flight record is damaged, or its end is missing");
  }
  return header;
}

std::uint64_t read_entered(const InputFile& file, const flight::LineHeader& line) {
  std::uint64_t entered = 0;
  file.read(static_cast<std::int64_t>(line.offset), &entered, sizeof(entered));
  return std::min(entered, static_cast<std::uint64_t>(largest_value));
}

bool read_has_messages(const InputFile& file, const flight::LineHeader& line) {
  std::uint64_t messages = 0;
  file.read(static_cast<std::int64_t>(line.offset + flight::messages_offset), &messages, sizeof(messages));
  return messages > 0;
}

// Numbers that this version does not know, in a damaged file, become the last one that it knows.
template <class Enum>
Enum known(std::uint32_t value, Enum last) {
  return static_cast<Enum>(std::min(value, static_cast<std::uint32_t>(last)));
}

FlightEvent event_of(const Words& words) {
  char text[flight_text_bytes];
  std::memcpy(text, &words[Word::first_of_text], sizeof(text));
  const auto low = [&](Word word) { return static_cast<std::uint32_t>(words[word]); };
  const auto high = [&](Word word) { return static_cast<std::int32_t>(words[word] >> 32); };
  const auto time = [&](Word word) {
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(words[word]), 0, largest_value);
  };
  return {.activity = known(low(Word::activity_number), Activity::ended),
          .begin = time(Word::begin),
          .end = time(Word::end),
          .step = std::clamp<std::int64_t>(static_cast<std::int64_t>(words[Word::step]), -1, largest_value),
          .number = high(Word::activity_number),
          .text = text_of(text),
          .message = known(low(Word::message_peer), FlightMessage::receive),
          .peer = high(Word::message_peer)};
}

FlightHistory without_events(const InputFile& file, const flight::LineHeader& line) {
  FlightHistory history;
  history.thread = known(line.thread, FlightThread::saving);
  history.name = text_of(line.name);
  history.group = line.group;
  history.entered = read_entered(file, line);
  history.has_messages = read_has_messages(file, line);
  return history;
}

// Reads the last `wanted` events, or as many as there are. Fails, with an empty value, if the line was overwritten
// meanwhile.
std::optional<FlightHistory> try_read(const InputFile& file, const flight::LineHeader& line, std::uint64_t wanted) {
  FlightHistory history = without_events(file, line);
  const std::uint64_t count = std::min({history.entered, wanted, std::uint64_t{line.capacity}});
  const std::uint64_t first = history.entered - count;
  std::vector<Words> words(count);
  const auto read = [&](std::uint64_t from, std::uint64_t events) {  // events that do not pass the end of the ring
    if (events == 0) return;
    const std::uint64_t offset = line.offset + flight::ring_header_bytes + from % line.capacity * flight::event_bytes;
    file.read(static_cast<std::int64_t>(offset), &words[from - first],
              static_cast<std::int64_t>(events * flight::event_bytes));
  };
  const std::uint64_t before_end = std::min(count, line.capacity - first % line.capacity);
  read(first, before_end);
  read(first + before_end, count - before_end);
  const std::uint64_t after = read_entered(file, line);
  if (after < history.entered) return {};  // the line has a new owner
  // While event `after` is written, the event that it replaces is not whole.
  const std::uint64_t whole = after + 1 > line.capacity ? after + 1 - line.capacity : 0;
  if (count > 0 && whole >= history.entered) return {};
  for (std::uint64_t i = std::max(first, whole); i < history.entered; ++i) {
    FlightEvent event = event_of(words[i - first]);
    if (!history.events.empty() && history.events.back().under_way()) history.events.back().end = event.begin;
    history.events.push_back(std::move(event));
  }
  return history;
}

FlightHistory read_line(const InputFile& file, const flight::LineHeader& line, std::uint64_t wanted) {
  constexpr int tries = 100;
  for (int i = 0; i < tries; ++i) {
    if (auto history = try_read(file, line, wanted)) return std::move(*history);
  }
  return without_events(file, line);
}

const FlightEvent* last_of(const FlightHistory& line) { return line.events.empty() ? nullptr : &line.events.back(); }

// The event under way that began first, in the lines of one kind; null if there is none.
const FlightEvent* oldest_under_way(const FlightState& state, FlightThread thread) {
  const FlightEvent* oldest = nullptr;
  for (const FlightHistory& line : state.lines) {
    const FlightEvent* const event = last_of(line);
    if (line.thread != thread || event == nullptr || !event->under_way()) continue;
    if (oldest == nullptr || event->begin < oldest->begin) oldest = event;
  }
  return oldest;
}

const FlightEvent* newest_of(const FlightState& state, FlightThread thread) {
  const FlightEvent* newest = nullptr;
  for (const FlightHistory& line : state.lines) {
    const FlightEvent* const event = last_of(line);
    if (line.thread == thread && event != nullptr && (newest == nullptr || event->begin > newest->begin))
      newest = event;
  }
  return newest;
}

}  // namespace

FlightState read_flight_record(const std::string& path, FlightEvents events) {
  const InputFile file(path);
  const flight::Header header = read_header(file);
  FlightState state{header.rank,
                    header.ranks,
                    header.process,
                    text_of(header.host),
                    std::clamp(header.wall_offset, -largest_value, largest_value),
                    {},
                    header.lost_lines > 0};
  for (std::uint32_t i = 0; i < header.lines; ++i) {
    const flight::LineHeader& line = header.table[i];
    state.lines.push_back(read_line(file, line, events == FlightEvents::last ? 1 : line.capacity));
  }
  return state;
}

std::optional<FlightEvent> activity_of(const FlightState& state) {
  const FlightEvent* const training = newest_of(state, FlightThread::training);
  if (training == nullptr) return {};
  const FlightEvent* more = nullptr;
  switch (training->activity) {
    case Activity::waiting_for_data:
      more = oldest_under_way(state, FlightThread::data);
      break;
    case Activity::saving:
      more = oldest_under_way(state, FlightThread::saving);
      break;
    case Activity::computing:  // collectives on other threads may be under way
    case Activity::updating:
    case Activity::ended:
      return *training;
    default:
      break;
  }
  if (more == nullptr) more = oldest_under_way(state, FlightThread::communication);
  return more != nullptr ? *more : *training;
}

std::int64_t last_change(const FlightState& state) {
  std::int64_t last = 0;
  for (const FlightHistory& line : state.lines) {
    if (const FlightEvent* event = last_of(line)) last = std::max({last, event->begin, event->end});
  }
  return last;
}

std::string_view name_of(Activity activity) {
  switch (activity) {
    case Activity::starting:
      return "starting";
    case Activity::reading_data:
      return "reading data";
    case Activity::waiting_for_data:
      return "waiting for data";
    case Activity::computing:
      return "computing";
    case Activity::communicating:
      return "communicating";
    case Activity::updating:
      return "updating weights";
    case Activity::saving:
      return "saving";
    case Activity::evaluating:
      return "evaluating";
    case Activity::waiting_for_ranks:
      return "outside of steps";
    case Activity::ended:
      return "ended";
  }
  return "";
}

std::string_view name_of(FlightThread thread) {
  switch (thread) {
    case FlightThread::training:
      return "training";
    case FlightThread::data:
      return "data";
    case FlightThread::communication:
      return "communication";
    case FlightThread::saving:
      return "saving";
  }
  return "";
}

std::string describe(const FlightEvent& event) {
  const std::string_view activity = name_of(event.activity);
  return event.text.empty() ? std::string(activity) : format("{}: {}", activity, event.text);
}

std::int64_t flight_clock() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace trainctl
