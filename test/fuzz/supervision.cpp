// Reads what ranks, agents and commands write for a supervisor: flight records, messages, status files, requests and
// lock files; and the programs whose functions a report on a hang names.
#include <algorithm>
#include <string>
#include <vector>

#include "core/base/flight_state.h"
#include "core/base/generation.h"
#include "core/base/json.h"
#include "core/base/supervisor_lock.h"
#include "io/metrics/run_lock.h"
#include "parallel/health/flights.h"
#include "parallel/launch/hosts.h"
#include "parallel/launch/ranks/status.h"
#include "parallel/launch/supervisor/resize.h"
#include "parallel/launch/watch/elf_functions.h"
#include "parallel/launch/watch/hang_rule.h"
#include "parallel/launch/watch/messages.h"
#include "test/fuzz/targets.h"

namespace trainctl::fuzz {
namespace {

void check(const FlightState& state) {
  expect(state.rank >= 0 && state.rank < state.ranks, "a rank is outside the run");
  for (const FlightHistory& line : state.lines) {
    expect(line.group.count >= 0, "a group has fewer ranks than none");
    const std::int64_t last = line.group.first + std::int64_t{line.group.stride} * (line.group.count - 1);
    if (line.group.count > 0) expect(std::max<std::int64_t>(line.group.first, last) < state.ranks, "no such rank");
    for (const FlightEvent& event : line.events) {
      expect(event.step >= -1 && event.begin >= 0 && event.end >= 0, "an event has an impossible step or time");
      describe(event);
    }
  }
}

}  // namespace

// A second rank has the same events.
void fuzz_flight_record(std::string_view bytes) {
  const std::string path = file_of(bytes, flight_file_name(0));
  constexpr std::int64_t now = std::int64_t{1} << 50;
  const FlightState last = read_flight_record(path, FlightEvents::last), all = read_flight_record(path);
  for (const FlightState* state : {&last, &all}) {
    check(*state);
    doing_text(view_of(*state, now));
    activity_of(*state);
    last_change(*state);
  }
  mean_step_seconds(all, 1);
  last_done_step(0, fuzz_folder());
  Flights flights{{all, all}, {}};
  flights.ranks.back().rank = (all.rank + 1) % all.ranks;
  if (all.ranks > 1000) return;  // the tables have a row for each rank
  first_divergence(flights.ranks);
  describe_flights(flights);
  json_text(flights_json(flights));
}

// The lines of a supervisor, and those of an agent, which begin with a mark.
void fuzz_watch_messages(std::string_view bytes) {
  constexpr std::string_view mark = "mark";
  const auto without_end = [](std::string line) { return line.substr(0, line.size() - 1); };
  LineReader reader;
  HangRule rule(HangChoice::automatic, 3);
  double now = 0;
  for (const std::string& line : reader.add(std::string(bytes) + "\n")) {
    if (const auto request = read_request(line)) {
      expect(read_request(without_end(to_line(*request))) == request, "a request is not read as it is written");
    }
    const auto news = read_news(line, mark);
    if (!news) continue;
    const std::string again = to_line(*news, mark);
    const auto same = read_news(without_end(again), mark);
    expect(same && to_line(*same, mark) == again, "a message is not read as it is written");
    rule.tick(now += 1);
    for (const RankView& view : news->ranks) {
      doing_text(view);
      rule.note(view, "h1", now);
    }
    if (rule.hangs(now)) awaited_ranks(rule, now, {}, {});
  }
}

// The bytes are the status, each of the notes, and a text of standard error with notes.
void fuzz_rank_status(std::string_view bytes) {
  const std::string path = file_of(bytes, "status");
  for (const char* note : {"ready", "stop-time", "step", "log", "refused"})
    file_of(bytes, std::string("status.") + note);
  read_status(path);
  marked_processes(path);
  read_stop_time(path);
  read_step(path);
  read_log_path(path);
  const std::size_t refused = read_refused_resizes(path).size();
  expect(read_refused_resizes(path, refused).empty(), "a refused request is read twice");
  std::string text(bytes);
  take_notes(path, text);
  expect(text.size() <= bytes.size(), "notes add text");
}

void fuzz_resize_request(std::string_view bytes) {
  file_of(bytes, "resize");
  if (const auto ranks = requested_ranks_of(fuzz_folder())) {
    expect(*ranks >= 1 && *ranks <= max_slots, "a number of ranks is out of range");
  }
}

void fuzz_lock(std::string_view bytes) {
  file_of(bytes, "lock");
  file_of(bytes, "supervisor");
  holder_exists(lock_holder(fuzz_folder()));
  for (const std::string& launch : {lock_generation(fuzz_folder()).launch, last_supervisor_of(fuzz_folder())}) {
    host_of_launch(launch);
    is_launch_of_this_host(launch);
  }
  supervisor_of(fuzz_folder());
}

void fuzz_elf(std::string_view bytes) {
  const ElfFunctions functions(file_of(bytes, "x.so"));
  for (const std::uint64_t offset : {0ULL, 64ULL, 4096ULL, ~0ULL}) {
    const std::uint64_t address = functions.address_of(offset).value_or(offset);
    if (const auto* found = functions.at(address)) readable_function(found->name);
    functions.bytes(offset, 16);
  }
}

}  // namespace trainctl::fuzz
