// Shows merged flight records as a table for users, and as JSON.
#include <algorithm>

#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/table.h"
#include "parallel/health/flights.h"

namespace trainctl {
namespace {

std::int64_t wall_of_last_change(const FlightState& state) { return last_change(state) + state.wall_offset; }

// The time by which the last change of each rank precedes the newest change of any rank, in seconds.
double seconds_since_change(const FlightState& state, std::span<const FlightState> ranks) {
  std::int64_t newest = 0;
  for (const FlightState& other : ranks) newest = std::max(newest, wall_of_last_change(other));
  return 1e-9 * static_cast<double>(newest - wall_of_last_change(state));
}

// Null before the first step.
Json step_json(std::int64_t step) { return step < 0 ? Json() : Json(step); }

// "rank 1", "ranks 0 and 2" or "ranks 0, 1 and 2".
std::string rank_list(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    text += format("{}{}", i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ", ranks[i]);
  }
  return text;
}

std::string sentence(const FlightDivergence& found) {
  const std::string when = found.step > 0 ? format("at step {}", found.step) : "before their first step";
  std::string text =
      format("The ranks diverge first {}, call {} of {}: {}", when, found.number, rank_list(found.ranks), found.text);
  if (!found.entered.empty()) text += format("; {} entered it", rank_list(found.entered));
  if (!found.missing.empty()) text += format("; {} did not", rank_list(found.missing));
  for (const auto& [rank, other] : found.different) text += format("; rank {} entered {} instead", rank, other);
  return text + ".\n";
}

}  // namespace

std::string describe_flights(const Flights& flights) {
  const std::vector<FlightState>& ranks = flights.ranks;
  TextTable table({{"rank", TextTable::Align::right},
                   {"host"},
                   {"process", TextTable::Align::right},
                   {"step", TextTable::Align::right},
                   {"last activity"},
                   {"unchanged for", TextTable::Align::right}});
  for (const FlightState& state : ranks) {
    const std::optional<FlightEvent> event = activity_of(state);
    table.add({std::to_string(state.rank), state.host, std::to_string(state.process),
               event && event->step >= 0 ? std::to_string(event->step) : "-", event ? describe(*event) : "-",
               seconds_text(seconds_since_change(state, ranks))});
  }
  std::string text = table.text();
  const int expected = ranks.empty() ? 0 : ranks.front().ranks;
  if (std::ssize(ranks) < expected) {
    text += format("{} of {} have no {}flight record here.\n", expected - std::ssize(ranks), counted(expected, "rank"),
                   flights.problems.empty() ? "" : "readable ");
  }
  for (const std::string& problem : flights.problems) text += problem + "\n";
  const std::optional<FlightDivergence> found = first_divergence(ranks);
  if (found) return text + sentence(*found);
  const auto has_calls = [](const FlightState& state) {
    return std::any_of(state.lines.begin(), state.lines.end(),
                       [](const FlightHistory& line) { return line.thread == FlightThread::communication; });
  };
  return text + (std::any_of(ranks.begin(), ranks.end(), has_calls)
                     ? "All ranks have entered the same recorded collectives.\n"
                     : "No collectives are recorded.\n");
}

Json flights_json(const Flights& flights) {
  const std::vector<FlightState>& ranks = flights.ranks;
  Json json{{"ranks", Json::array()}, {"unreadable", flights.problems}, {"divergence", nullptr}};
  for (const FlightState& state : ranks) {
    Json row{{"rank", state.rank}, {"host", state.host}, {"process", state.process}};
    if (const std::optional<FlightEvent> event = activity_of(state)) {
      row["step"] = step_json(event->step);
      row["activity"] = std::string(name_of(event->activity));
      row["text"] = event->text;
    }
    row["seconds_since_change"] = seconds_since_change(state, ranks);
    json["ranks"].push_back(std::move(row));
  }
  if (const std::optional<FlightDivergence> found = first_divergence(ranks)) {
    json["divergence"] = {{"step", step_json(found->step)}, {"number", found->number},   {"call", found->text},
                          {"ranks", found->ranks},          {"entered", found->entered}, {"missing", found->missing},
                          {"different", Json::array()}};
    for (const auto& [rank, text] : found->different) {
      json["divergence"]["different"].push_back({{"rank", rank}, {"call", text}});
    }
  }
  return json;
}

}  // namespace trainctl
