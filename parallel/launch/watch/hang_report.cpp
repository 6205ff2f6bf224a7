// Writes the report on ranks that hang.
#include "parallel/launch/watch/hang_report.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/base/error.h"
#include "core/base/flight_state.h"
#include "core/base/format.h"
#include "core/base/table.h"

namespace trainctl {
namespace {

constexpr std::size_t most_named = 4;  // ranks that the first line names, and whose processes are shown
constexpr std::size_t most_rows = 64;  // ranks in the table

bool is_silent_host(const HangEvidence& evidence, const std::string& host) {
  return std::find(evidence.silent_hosts.begin(), evidence.silent_hosts.end(), host) != evidence.silent_hosts.end();
}

std::string whole_seconds(double seconds) { return format("{:.0f} s", std::floor(seconds)); }

const ProcessPlace* place_of(const HangEvidence& evidence, int rank) {
  const auto found = evidence.places.find(rank);
  return found == evidence.places.end() ? nullptr : &found->second;
}

// Describes what a rank that others wait for does, such as "rank 5 on n3: reading img_0412.jpg for 14 s".
std::string describe_awaited(int number, const WatchedRank& rank, const HangEvidence& evidence, double now) {
  const std::string who = format("rank {} on {}", number, rank.host);
  if (is_silent_host(evidence, rank.host)) {
    return format("{}: its host has not answered for {}", who, whole_seconds(now - rank.heard));
  }
  const ProcessPlace* place = place_of(evidence, number);
  const char* how = place == nullptr ? "" : place->stopped ? "stopped by a signal while " : "";
  return format("{}: {}{} for {}", who, how, doing_text(rank.view), whole_seconds(rank.seconds(now)));
}

// Returns the rank that has waited longest for others; null if none waits.
const WatchedRank* longest_waiting(const HangRule& rule, const std::vector<int>& awaited, double now) {
  const WatchedRank* longest = nullptr;
  for (const auto& [number, rank] : rule.ranks()) {
    if (!rank.view.waits || std::find(awaited.begin(), awaited.end(), number) != awaited.end()) continue;
    if (longest == nullptr || rank.seconds(now) > longest->seconds(now)) longest = &rank;
  }
  return longest;
}

std::string hang_sentence(const HangRule& rule, const std::vector<int>& awaited, const HangEvidence& evidence,
                          double now) {
  const WatchedRank* waiting = longest_waiting(rule, awaited, now);
  const WatchedRank& any = waiting != nullptr ? *waiting : rule.ranks().begin()->second;
  std::string text = any.view.step > 0 ? format("step {}", any.view.step) : "no step has begun since the start";
  if (waiting != nullptr) {
    text += ", " + (waiting->view.text.empty() ? std::string(name_of(waiting->view.activity)) : waiting->view.text);
  }
  if (awaited.empty()) return text + ": no rank makes progress, and all wait for each other";
  std::string who;
  for (std::size_t i = 0; i < std::min(awaited.size(), most_named); ++i) {
    who += (i == 0 ? "" : "; ") + describe_awaited(awaited[i], rule.ranks().at(awaited[i]), evidence, now);
  }
  if (awaited.size() > most_named) who += format("; and {} more", counted(awaited.size() - most_named, "rank"));
  return format("{}: {}{}", text, waiting != nullptr ? "waiting for " : "no progress: ", who);
}

std::string table_of_ranks(const HangRule& rule, const std::vector<int>& awaited, const HangEvidence& evidence,
                           double now) {
  TextTable rows({{"rank", TextTable::Align::right},
                  {"host"},
                  {"step", TextTable::Align::right},
                  {"does"},
                  {"for", TextTable::Align::right}});
  std::vector<int> shown = awaited;  // first, so that a limited table has them
  for (const auto& [number, rank] : rule.ranks()) {
    if (std::find(awaited.begin(), awaited.end(), number) == awaited.end()) shown.push_back(number);
  }
  const std::size_t left_out = shown.size() - std::min(shown.size(), most_rows);
  shown.resize(shown.size() - left_out);
  std::sort(shown.begin(), shown.end());
  for (const int number : shown) {
    const WatchedRank& rank = rule.ranks().at(number);
    const ProcessPlace* place = place_of(evidence, number);
    std::string does = is_silent_host(evidence, rank.host) ? "unknown: its host does not answer"
                       : rank.view.text.empty()            ? std::string(name_of(rank.view.activity))
                                                : format("{}: {}", name_of(rank.view.activity), rank.view.text);
    if (place != nullptr && place->stopped) does += " (stopped by a signal)";
    rows.add({std::to_string(number), rank.host, rank.view.step >= 0 ? std::to_string(rank.view.step) : "-", does,
              whole_seconds(rank.seconds(now))});
  }
  std::string text = rows.text();
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return left_out == 0 ? text : text + format("\nand {} that wait", counted(static_cast<long long>(left_out), "rank"));
}

std::vector<int> ranks_where(const HangEvidence& evidence, bool ProcessPlace::*property) {
  std::vector<int> ranks;
  for (const auto& [rank, place] : evidence.places) {
    if (place.*property) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace

std::vector<int> stopped_ranks(const HangEvidence& evidence) { return ranks_where(evidence, &ProcessPlace::stopped); }

std::vector<int> debugged_ranks(const HangEvidence& evidence) {
  return ranks_where(evidence, &ProcessPlace::in_debugger);
}

Outcome hang_outcome(const HangRule& rule, double now, const HangEvidence& evidence) {
  std::vector<int> awaited = awaited_ranks(rule, now, stopped_ranks(evidence), evidence.silent_hosts);
  std::erase_if(awaited, [&](int rank) { return !rule.ranks().contains(rank); });
  Outcome outcome{.kind = OutcomeKind::rank_hung, .end = {exit_code(ErrorKind::peer)}};
  std::string& text = outcome.end.message;
  text = hang_sentence(rule, awaited, evidence, now) + "\n" + table_of_ranks(rule, awaited, evidence, now);
  for (std::size_t i = 0; i < std::min(awaited.size(), most_named); ++i) {
    const ProcessPlace* place = place_of(evidence, awaited[i]);
    if (place == nullptr) continue;
    text += format("\nthe threads of rank {} (process {} on {}):\n{}", awaited[i],
                   rule.ranks().at(awaited[i]).view.process, rule.ranks().at(awaited[i]).host, to_text(*place, "  "));
  }
  if (awaited.empty()) return outcome;
  const auto reads = [&](int rank) {
    const Activity does = rule.ranks().at(rank).view.activity;
    return does == Activity::reading_data || does == Activity::waiting_for_data;
  };
  if (std::any_of(awaited.begin(), awaited.end(), reads)) {
    text += format("\nif the data may take longer than {:g} s, set a longer time by cluster.hang_timeout",
                   std::floor(rule.limit().value_or(0)));
  }
  const WatchedRank& first = rule.ranks().at(awaited.front());
  if (is_silent_host(evidence, first.host)) outcome.kind = OutcomeKind::host_lost;
  outcome.rank = awaited.front();
  outcome.host = first.host;
  if (first.view.step >= 0) outcome.step = first.view.step;
  return outcome;
}

}  // namespace trainctl
