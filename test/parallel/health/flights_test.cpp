// Tests the comparison of flight records: random histories of several communicators, compared with a search through
// the whole lists of calls.
#include "parallel/health/flights.h"

#include <algorithm>
#include <filesystem>
#include <random>

#include "core/base/flight_record.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "test/catch.h"

namespace trainctl::test::flights_test {
namespace {

// One call that a rank has made.
struct Call {
  std::int64_t step = 0;
  std::int32_t number = 0;
  std::string text;
  std::int64_t time = 0;
};

struct Group {
  FlightGroup of;
  std::map<int, std::vector<Call>> calls;  // by rank, all calls that it has made
};

std::vector<int> members(const FlightGroup& group) {
  std::vector<int> ranks;
  for (int i = 0; i < group.count; ++i) ranks.push_back(group.first + i * group.stride);
  return ranks;
}

// The calls that all ranks of the group must make.
std::vector<Call> plan_of(int steps, std::mt19937& random) {
  std::vector<Call> plan;
  for (int step = 1; step <= steps; ++step) {
    const int calls = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < calls; ++i) plan.push_back({step, i, format("all_reduce of bucket {}", i), 0});
  }
  return plan;
}

// Lets each rank make a part of the plan. Most groups have no divergence; otherwise a rank stops early, or swaps two
// calls.
Group random_group(const FlightGroup& of, int steps, std::mt19937& random) {
  Group group{of, {}};
  const std::vector<Call> plan = plan_of(steps, random);
  const int fault = static_cast<int>(random() % 4);
  const auto faulty = members(of)[random() % static_cast<std::size_t>(of.count)];
  const std::size_t at = plan.size() - 1 - random() % std::min<std::size_t>(plan.size() - 1, 50);
  for (int rank : members(of)) {
    std::vector<Call> calls = plan;
    if (fault >= 2) calls.resize(std::min(plan.size(), at + 1));
    if (rank == faulty && fault == 2) calls.resize(at);
    if (rank == faulty && fault == 3) calls[at].text = "broadcast";
    for (std::size_t i = 0; i < calls.size(); ++i) {
      calls[i].time =
          1'000'000 * calls[i].step + 1000 * static_cast<std::int64_t>(i) + static_cast<std::int64_t>(random() % 900);
    }
    group.calls[rank] = std::move(calls);
  }
  return group;
}

// The reference: walks through the whole lists.
struct Expected {
  std::int64_t step = 0, time = 0;
  std::vector<int> missing, different;
};
std::optional<Expected> expected_of(const std::vector<Group>& groups) {
  std::optional<Expected> first;
  for (const Group& group : groups) {
    for (std::size_t i = 0;; ++i) {
      Expected found{0, std::numeric_limits<std::int64_t>::max(), {}, {}};
      std::map<std::string, std::vector<int>> by_text;
      for (const auto& [rank, calls] : group.calls) {
        if (i >= calls.size()) {
          found.missing.push_back(rank);
          continue;
        }
        by_text[calls[i].text].push_back(rank);
        if (calls[i].time < found.time) found.time = calls[i].time, found.step = calls[i].step;
      }
      if (by_text.empty()) break;
      std::size_t most = 0;
      for (const auto& [text, ranks] : by_text) most = std::max(most, ranks.size());
      if (by_text.size() > 1) {
        for (const auto& [text, ranks] : by_text) {
          if (ranks.size() < most || (text == "broadcast" && ranks.size() == 1)) found.different = ranks;
        }
      }
      if (found.missing.empty() && found.different.empty()) continue;
      if (!first || std::pair(found.step, found.time) < std::pair(first->step, first->time)) first = found;
      break;
    }
  }
  return first;
}

FlightHistory history_of(const Group& group, int rank, const std::string& name, std::size_t capacity) {
  const std::vector<Call>& calls = group.calls.at(rank);
  FlightHistory line{FlightThread::communication, name, group.of, calls.size(), {}};
  for (std::size_t i = calls.size() - std::min(calls.size(), capacity); i < calls.size(); ++i) {
    line.events.push_back({.activity = Activity::communicating,
                           .begin = calls[i].time,
                           .end = calls[i].time + 1,
                           .step = calls[i].step,
                           .number = calls[i].number,
                           .text = calls[i].text});
  }
  return line;
}

// A mesh of 2 x 3 ranks: three communicators along the data axis, two along the tensor axis, and the world.
std::vector<FlightGroup> mesh_groups() { return {{0, 3, 2}, {1, 3, 2}, {2, 3, 2}, {0, 1, 3}, {3, 1, 3}, {0, 1, 6}}; }

TEST_CASE("the first divergence is that of a search through all calls") {
  std::mt19937 random(std::random_device{}());
  int divergences = 0;
  for (int round = 0; round < 400; ++round) {
    const std::size_t capacity = round % 2 == 0 ? 1000 : 60;
    const int steps = 3 + static_cast<int>(random() % 60);
    std::vector<Group> groups;
    for (const FlightGroup& of : mesh_groups()) groups.push_back(random_group(of, steps, random));
    std::vector<FlightState> states;
    for (int rank = 0; rank < 6; ++rank) {
      FlightState state{.rank = rank, .ranks = 6, .process = 100 + rank, .host = "here", .lines = {}};
      for (std::size_t g = 0; g < groups.size(); ++g) {
        if (groups[g].calls.contains(rank)) {
          state.lines.push_back(history_of(groups[g], rank, format("communicator {}", g), capacity));
        }
      }
      std::shuffle(state.lines.begin(), state.lines.end(), random);
      states.push_back(std::move(state));
    }
    const std::optional<Expected> expected = expected_of(groups);
    const std::optional<FlightDivergence> found = first_divergence(states);
    REQUIRE(found.has_value() == expected.has_value());
    if (!found) continue;
    ++divergences;
    CHECK(found->step == expected->step);
    CHECK(found->missing == expected->missing);
    std::vector<int> different;
    for (const auto& [rank, text] : found->different) different.push_back(rank);
    // With two ranks that differ, either may be the one that is wrong.
    if (found->ranks.size() > 2) CHECK(different == expected->different);
    CHECK(different.empty() == expected->different.empty());
  }
  CHECK(divergences > 100);
}

FlightEvent message(std::int64_t step, FlightMessage kind, int peer, std::int64_t time) {
  return {.activity = Activity::communicating,
          .begin = time,
          .end = time + 1,
          .step = step,
          .text = kind == FlightMessage::send ? "send of x" : "receive of x",
          .message = kind,
          .peer = peer};
}

TEST_CASE("a message that its receiver has not reached is a divergence of these two ranks") {
  // Stages 0, 1 and 2 of a pipeline: in each step, 0 sends to 1 and 1 sends to 2. Rank 1 hangs before it sends in
  // step 5.
  for (const bool overwritten : {false, true}) {
    std::vector<FlightState> states;
    for (int rank = 0; rank < 3; ++rank) {
      FlightHistory line{FlightThread::communication, "communicator 1", {0, 1, 3}, 0, {}};
      for (std::int64_t step = 1; step <= 5; ++step) {
        if (rank == 0) line.events.push_back(message(step, FlightMessage::send, 1, 10 * step));
        if (rank == 1) line.events.push_back(message(step, FlightMessage::receive, 0, 10 * step + 1));
        if (rank == 1 && step < 5) line.events.push_back(message(step, FlightMessage::send, 2, 10 * step + 2));
        if (rank == 2) line.events.push_back(message(step, FlightMessage::receive, 1, 10 * step + 3));
      }
      line.entered = line.events.size();
      if (overwritten) {  // each rank has lost another number of its first events
        line.events.erase(line.events.begin(), line.events.begin() + 1 + rank);
      }
      states.push_back({.rank = rank, .ranks = 3, .host = "here", .lines = {line}});
    }
    const std::optional<FlightDivergence> found = first_divergence(states);
    REQUIRE(found);
    CHECK(found->step == 5);
    CHECK(found->ranks == std::vector<int>{1, 2});
    CHECK(found->entered == std::vector<int>{2});
    CHECK(found->missing == std::vector<int>{1});
    CHECK(found->text == "receive of x");
  }
}

TEST_CASE("a divergence is shown before those that only follow from it") {
  // Rank 1 waits for rank 3 in the earlier call, but rank 3 waits for a message that rank 2 has not sent.
  const auto call = [](std::int64_t time) {
    return FlightEvent{.activity = Activity::communicating, .begin = time, .step = 9, .text = "all_reduce of bucket 0"};
  };
  FlightEvent receive = message(9, FlightMessage::receive, 2, 500);
  receive.end = 0;
  const FlightHistory replicas{FlightThread::communication, "communicator 1", {1, 2, 2}, 1, {call(100)}};
  const FlightHistory stages{FlightThread::communication, "communicator 1", {2, 1, 2}, 1, {receive}};
  std::vector<FlightState> states;
  for (int rank = 0; rank < 4; ++rank) states.push_back({.rank = rank, .ranks = 4, .host = "here", .lines = {}});
  states[1].lines = {replicas};
  states[3].lines = {stages};
  const std::optional<FlightDivergence> found = first_divergence(states);
  REQUIRE(found);
  CHECK(found->text == "receive of x");
  CHECK(found->missing == std::vector<int>{2});
}

TEST_CASE("calls that a record has lost do not count as missing") {
  const FlightGroup world{0, 1, 2};
  // Rank 0 has sent and received a message in each of 50 steps.
  FlightHistory line{FlightThread::communication, "communicator 1", world, 100, {}};
  for (int step = 1; step <= 50; ++step) {
    const auto event = [&](FlightMessage message) {
      return FlightEvent{.begin = step, .end = step, .step = step, .text = "x", .message = message, .peer = 1};
    };
    line.events.push_back(event(FlightMessage::send));
    line.events.push_back(event(FlightMessage::receive));
  }
  std::vector<FlightState> states(2);
  for (int rank : {0, 1}) states[static_cast<std::size_t>(rank)].rank = rank;
  states[0].ranks = states[1].ranks = 2;
  states[0].lines = {line};
  REQUIRE(first_divergence(states));  // rank 1 has made no call
  states[1].lost_lines = true;        // or its calls are lost
  CHECK_FALSE(first_divergence(states));
  states[1].lost_lines = false;
  FlightHistory unread = line;  // or it wrote faster than its record could be read
  unread.events.clear();
  states[1].lines = {unread};
  CHECK_FALSE(first_divergence(states));
}

TEST_CASE("collectives are compared also if earlier messages were overwritten") {
  std::string folder = (std::filesystem::temp_directory_path() / "flights-XXXXXX").string();
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  const bool diverges = GENERATE(false, true);
  for (const int rank : {0, 1, 2}) {
    FlightRecord record(folder, rank, 3, "here");
    FlightLine line = record.line(FlightThread::communication, "communicator 1", {0, 1, 3});
    if (rank < 2) {  // only these two exchange messages
      line.enter({.step = 1,
                  .text = "x",
                  .message = rank == 0 ? FlightMessage::send : FlightMessage::receive,
                  .peer = 1 - rank});
    }
    for (int step = 2; step < 1500; ++step) {
      if (diverges && rank == 1 && step == 1499) break;
      line.enter({.activity = Activity::communicating, .step = step, .text = format("bucket {}", step % 7)});
    }
    line.leave();
  }
  const std::optional<FlightDivergence> found = first_divergence(read_flights(folder).ranks);
  REQUIRE(found.has_value() == diverges);
  if (found) CHECK((found->step == 1499 && found->missing == std::vector<int>{1}));
  std::filesystem::remove_all(folder);
}

TEST_CASE("a divergence before the first step is shown without a number of a step") {
  std::string folder = (std::filesystem::temp_directory_path() / "flights-XXXXXX").string();
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  for (const int rank : {0, 1}) {
    FlightRecord record(folder, rank, 2, "here");
    record.training().enter({.activity = Activity::starting, .text = "comparing the configs"});
    FlightLine line = record.line(FlightThread::communication, "communicator 1", {0, 1, 2});
    if (rank == 0) line.enter({.activity = Activity::communicating, .text = "all_gather of 8 B"});
  }
  const Flights flights = read_flights(folder);
  const std::string text = describe_flights(flights);
  INFO(text);
  CHECK(text.find("The ranks diverge first before their first step, call 0 of ranks 0 and 1: all_gather of 8 B; "
                  "rank 0 entered it; rank 1 did not.") != std::string::npos);
  CHECK(text.find("-1") == std::string::npos);
  const Json json = flights_json(flights);
  CHECK(json["divergence"]["step"].is_null());
  CHECK(json["ranks"][1]["step"].is_null());
  std::filesystem::remove_all(folder);
}

TEST_CASE("records of a folder are merged, and shown with the first divergence") {
  std::string folder = (std::filesystem::temp_directory_path() / "flights-XXXXXX").string();
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  {
    FlightRecord old(folder, 9, 12, "here");  // of an earlier run with more ranks
    old.training().enter({.activity = Activity::ended});
  }
  for (int rank = 0; rank < 3; ++rank) {
    FlightRecord record(folder, rank, 3, "here");
    FlightLine line = record.line(FlightThread::communication, "communicator 1", {0, 1, 3});
    for (int step = 1; step <= 4; ++step) {
      record.training().enter({.activity = Activity::computing, .step = step, .text = "forward"});
      if (rank == 1 && step == 4) break;
      record.training().enter({.activity = Activity::communicating, .step = step, .text = "wait for bucket 0 (fc1)"});
      line.enter({.activity = Activity::communicating, .step = step, .text = "all_reduce of bucket 0 (fc1)"});
    }
  }
  Flights flights = read_flights(folder);
  REQUIRE(flights.ranks.size() == 3);
  CHECK(flights.problems.empty());
  const std::string text = describe_flights(flights);
  INFO(text);
  CHECK(text.find("computing: forward") != std::string::npos);
  CHECK(
      text.find("The ranks diverge first at step 4, call 0 of ranks 0, 1 and 2: all_reduce of bucket 0 (fc1); ranks 0 "
                "and 2 entered it; rank 1 did not.") != std::string::npos);
  const Json json = flights_json(flights);
  CHECK(json["ranks"].size() == 3);
  CHECK(json["ranks"][1]["activity"] == "computing");
  CHECK(json["ranks"][1]["step"] == 4);
  CHECK(json["divergence"]["missing"] == std::vector<int>{1});

  std::filesystem::resize_file(folder + "/rank-00001", 100);  // a damaged record
  flights = read_flights(folder);
  CHECK(flights.ranks.size() == 2);
  const std::string rest = describe_flights(flights);
  INFO(rest);
  CHECK(rest.find("1 of 3 ranks have no readable flight record here.") != std::string::npos);
  CHECK(rest.find("rank-00001: this is no flight record, or its end is missing") != std::string::npos);
  CHECK(rest.find("All ranks have entered the same recorded collectives.") != std::string::npos);
  CHECK(flights_json(flights)["unreadable"].size() == 1);
  for (const char* record : {"rank-00000", "rank-00002", "rank-00009"}) std::filesystem::remove(folder + "/" + record);
  CHECK_THROWS_WITH(read_flights(folder), Catch::Contains("rank-00001"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace trainctl::test::flights_test
