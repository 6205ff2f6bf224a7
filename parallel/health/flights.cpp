// Compares the calls that the ranks of each communicator have made.
//
// Ranks make the calls of a communicator in the same order, so that call i of one rank belongs to call i of the others.
// Only where a ring was overwritten and had messages too, whose numbers differ between ranks, calls are counted
// within each step instead.
#include "parallel/health/flights.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "core/base/error.h"
#include "core/base/files.h"

namespace trainctl {
namespace {

// The step, or 0 if calls are counted from the start, and the number of the call from there.
using CallPosition = std::pair<std::int64_t, std::int64_t>;

// The calls of one rank.
struct RankCalls {
  CallPosition known_from;  // earlier calls may have been made
  std::map<CallPosition, const FlightEvent*> made;
  std::int64_t wall_offset = 0;

  bool entered(const CallPosition& at) const { return at < known_from || made.contains(at); }
};

// Calls that the same ranks must make in the same order: the collectives of a communicator, or the messages from one
// rank to another.
struct JointCalls {
  std::vector<int> ranks;
  bool are_messages = false;
  std::map<int, RankCalls> calls;  // by rank
};

struct RankLine {
  const FlightHistory* history = nullptr;
  std::int64_t wall_offset = 0;

  bool is_overwritten() const { return history->entered > history->events.size(); }
  bool is_unread() const { return history->entered > 0 && history->events.empty(); }
  bool has_messages() const {
    return history->has_messages ||
           std::any_of(history->events.begin(), history->events.end(),
                       [](const FlightEvent& event) { return event.message != FlightMessage::none; });
  }
};

struct JointLines {
  FlightThread thread = FlightThread::communication;
  FlightGroup group;
  std::map<int, RankLine> lines;  // by rank
};

std::vector<int> ranks_of(const FlightGroup& group) {
  std::vector<int> ranks;
  for (int i = 0; i < group.count; ++i) ranks.push_back(group.first + i * group.stride);
  return ranks;
}

// The communicators, found by kind, name and ranks.
std::vector<JointLines> communicators(std::span<const FlightState> ranks) {
  using Key = std::tuple<FlightThread, std::string, int, int, int>;
  std::map<Key, JointLines> found;
  for (const FlightState& state : ranks) {
    for (const FlightHistory& line : state.lines) {
      const FlightGroup& group = line.group;
      if (group.count < 2) continue;
      JointLines& of = found[{line.thread, line.name, group.first, group.stride, group.count}];
      of.thread = line.thread;
      of.group = group;
      of.lines[state.rank] = {&line, state.wall_offset};
    }
  }
  // A rank that has a record and no line has made no call, unless its record has lost lines.
  static const FlightHistory no_calls;
  std::vector<JointLines> all;
  for (auto& [key, communicator] : found) {
    const std::vector<int> members = ranks_of(communicator.group);
    for (const FlightState& state : ranks) {
      if (state.lost_lines || std::find(members.begin(), members.end(), state.rank) == members.end()) continue;
      communicator.lines.try_emplace(state.rank, RankLine{&no_calls, state.wall_offset});
    }
    all.push_back(std::move(communicator));
  }
  return all;
}

// The sender and the receiver of a message of this rank; {-1, -1} for a collective.
std::pair<int, int> ends_of(const FlightEvent& event, int rank) {
  switch (event.message) {
    case FlightMessage::none:
      break;
    case FlightMessage::send:
      return {rank, event.peer};
    case FlightMessage::receive:
      return {event.peer, rank};
  }
  return {-1, -1};
}

// Adds the calls of a rank to the streams of its communicator. The key is the sender and the receiver, or {-1, -1} for
// collectives.
void add_calls(int rank, const RankLine& line, bool by_step, std::map<std::pair<int, int>, JointCalls>& streams) {
  std::map<std::pair<int, int>, CallPosition> next;
  const std::vector<FlightEvent>& events = line.history->events;
  const bool lacks_some = line.is_overwritten();
  CallPosition known_from{0, 0};
  if (by_step) {
    known_from = {lacks_some ? events.front().step + 1 : std::numeric_limits<std::int64_t>::min(), 0};
  } else if (lacks_some) {
    known_from.second = static_cast<std::int64_t>(line.history->entered - events.size());
  }
  for (auto& [key, stream] : streams) {
    stream.calls[rank] = {known_from, {}, line.wall_offset};
    next[key] = by_step ? CallPosition{std::numeric_limits<std::int64_t>::min(), 0} : known_from;
  }
  for (const FlightEvent& event : events) {
    const std::pair<int, int> key = ends_of(event, rank);
    const auto stream = streams.find(key);
    if (stream == streams.end()) continue;  // the message of a damaged record
    CallPosition& at = next[key];
    if (by_step && at.first != event.step) at = {event.step, 0};
    if (at >= known_from) stream->second.calls.at(rank).made[at] = &event;
    ++at.second;
  }
}

// Adds a stream for each other member to which the rank has sent a message, or from which it has received one.
void add_message_streams(int rank, const RankLine& line, const std::vector<int>& members,
                         std::map<std::pair<int, int>, JointCalls>& streams) {
  for (const FlightEvent& event : line.history->events) {
    if (event.message == FlightMessage::none || event.peer == rank) continue;
    const std::pair<int, int> ends = ends_of(event, rank);
    if (streams.contains(ends) || std::find(members.begin(), members.end(), event.peer) == members.end()) continue;
    streams[ends] = {{ends.first, ends.second}, true, {}};
  }
}

// Divides the calls of a communicator into streams.
std::map<std::pair<int, int>, JointCalls> streams_of(const JointLines& communicator) {
  const std::vector<int> members = ranks_of(communicator.group);
  std::map<std::pair<int, int>, JointCalls> streams;
  bool has_messages = false, is_overwritten = false;
  for (const auto& [rank, line] : communicator.lines) {
    has_messages = has_messages || line.has_messages();
    is_overwritten = is_overwritten || line.is_overwritten();
  }
  streams[{-1, -1}].ranks = members;
  for (const auto& [rank, line] : communicator.lines) add_message_streams(rank, line, members, streams);
  const bool by_step = has_messages && is_overwritten;
  // The thread that saves checkpoints does not follow the steps.
  if (by_step && communicator.thread == FlightThread::saving) return {};
  for (const auto& [rank, line] : communicator.lines) {
    if (!by_step || !line.is_unread()) add_calls(rank, line, by_step, streams);  // its steps are unknown
  }
  // A message concerns only its two ranks.
  for (auto& [key, stream] : streams) {
    std::erase_if(stream.calls, [&stream](const auto& of) {
      return std::find(stream.ranks.begin(), stream.ranks.end(), of.first) == stream.ranks.end();
    });
  }
  return streams;
}

// A divergence with the time of the first rank that made the call and the ranks that still wait in it, for comparisons
// with other streams.
struct Found {
  FlightDivergence divergence;
  std::int64_t time = 0;
  std::set<int> waiting;
};

// Compares the calls at one position. Empty if all ranks have made the same call.
std::optional<Found> compare(const JointCalls& stream, const CallPosition& at) {
  Found found;
  found.divergence.ranks = stream.ranks;
  found.time = std::numeric_limits<std::int64_t>::max();
  std::map<std::string, int> votes;
  std::map<int, const FlightEvent*> made;
  for (const auto& [rank, calls] : stream.calls) {
    if (!calls.entered(at)) {
      found.divergence.missing.push_back(rank);
      continue;
    }
    found.divergence.entered.push_back(rank);
    const auto event = calls.made.find(at);
    if (event == calls.made.end()) continue;
    made[rank] = event->second;
    if (event->second->under_way()) found.waiting.insert(rank);
    ++votes[event->second->text];
    const std::int64_t time = event->second->begin + calls.wall_offset;
    if (time >= found.time) continue;
    found.time = time;
    found.divergence.step = event->second->step;
    found.divergence.number = event->second->number;
  }
  if (made.empty()) return {};
  const auto most =
      std::max_element(votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  found.divergence.text = stream.are_messages ? made.begin()->second->text : most->first;
  for (const auto& [rank, event] : made) {
    if (stream.are_messages || event->text == found.divergence.text) continue;
    found.divergence.different[rank] = event->text;
    std::erase(found.divergence.entered, rank);
  }
  if (found.divergence.missing.empty() && found.divergence.different.empty()) return {};
  return found;
}

std::optional<Found> first_in(const JointCalls& stream) {
  std::set<CallPosition> positions;
  for (const auto& [rank, calls] : stream.calls) {
    for (const auto& [position, event] : calls.made) positions.insert(position);
  }
  for (const CallPosition& at : positions) {
    if (auto found = compare(stream, at)) return found;
  }
  return {};
}

}  // namespace

Flights read_flights(const std::string& folder) {
  const FileRole role{ErrorKind::data, "a run keeps the flight records of its ranks there, unless the disk was full"};
  Flights flights;
  std::vector<FlightState>& found = flights.ranks;
  for (const FolderEntry& entry : list_folder(folder, role)) {
    if (!entry.name.starts_with("rank-")) continue;
    try {
      found.push_back(read_flight_record(folder + "/" + entry.name));
    } catch (const Error& error) {
      flights.problems.emplace_back(error.what());
    }
  }
  if (found.empty() && !flights.problems.empty()) throw Error(ErrorKind::data, flights.problems.front());
  if (found.empty()) throw Error(ErrorKind::data, SourceLocation{folder}, "the folder holds no flight record");
  const auto newest = std::max_element(found.begin(), found.end(), [](const FlightState& a, const FlightState& b) {
    return last_change(a) + a.wall_offset < last_change(b) + b.wall_offset;
  });
  std::erase_if(found, [ranks = newest->ranks](const FlightState& state) { return state.ranks != ranks; });
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  return flights;
}

std::optional<FlightDivergence> first_divergence(std::span<const FlightState> ranks) {
  std::vector<Found> all;
  std::set<int> waiting;
  for (const JointLines& communicator : communicators(ranks)) {
    for (const auto& [key, stream] : streams_of(communicator)) {
      std::optional<Found> found = first_in(stream);
      if (!found) continue;
      waiting.insert(found->waiting.begin(), found->waiting.end());
      all.push_back(std::move(*found));
    }
  }
  if (all.empty()) return {};
  const auto order = [&waiting](const Found& of) {
    const std::vector<int>& missing = of.divergence.missing;
    const bool follows = of.divergence.different.empty() &&
                         std::all_of(missing.begin(), missing.end(), [&](int rank) { return waiting.contains(rank); });
    return std::tuple(follows, of.divergence.step, of.time);
  };
  const auto first = std::min_element(all.begin(), all.end(),
                                      [&order](const Found& a, const Found& b) { return order(a) < order(b); });
  return std::move(first->divergence);
}

}  // namespace trainctl
