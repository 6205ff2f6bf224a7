// Tests that communicators write their calls to the flight records of their ranks.
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "core/backend/immediate_stream.h"
#include "core/base/flight_record.h"
#include "core/base/flight_state.h"
#include "core/base/format.h"
#include "parallel/comm/communicators.h"
#include "test/catch.h"

namespace trainctl::test::recorded_test {
namespace {

// What a rank of three does: two steps with a described sum over all ranks, a sum over its part of them, and a message
// from rank 0 to rank 2.
void work(Communicator& world, FlightRecord& record) {
  world.attendance().set_flight(&record);
  ImmediateStream stream;
  const int rank = world.rank();
  const auto part = world.split(rank % 2, rank);
  float values[2] = {1, 2};
  const View view{values, DType::float32, 2};
  for (int step = 1; step <= 2; ++step) {
    record.set_step(step);
    world.describe_next("all_reduce of bucket 0 (c1 ... fc)");
    world.all_reduce(view, Reduction::sum, stream);
    part->all_reduce(view, Reduction::sum, stream);
    part->all_reduce(view, Reduction::maximum, stream);
    if (rank == 0) world.send(view, 2, stream);
    if (rank == 2) world.receive(view, 0, stream);
  }
}

const FlightHistory& line_of(const FlightState& state, const FlightGroup& group) {
  const auto found = std::find_if(state.lines.begin(), state.lines.end(), [&](const FlightHistory& line) {
    return line.thread == FlightThread::communication && line.group == group;
  });
  REQUIRE(found != state.lines.end());
  return *found;
}

TEST_CASE("communicators record their calls, with the ranks, the step and the text of each") {
  std::string folder = (std::filesystem::temp_directory_path() / "recorded-XXXXXX").string();
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  auto ranks = thread_communicators(3);
  std::vector<std::unique_ptr<FlightRecord>> records;
  for (int rank = 0; rank < 3; ++rank) records.push_back(std::make_unique<FlightRecord>(folder, rank, 3, "here"));
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < 3; ++rank)
      threads.emplace_back([&, rank] { work(*ranks[rank], *records[rank]); });
  }
  for (int rank = 0; rank < 3; ++rank) {
    const FlightState state = read_flight_record(records[static_cast<std::size_t>(rank)]->path());
    std::vector<std::string> calls;
    for (const FlightEvent& event : line_of(state, {0, 1, 3}).events) {
      CHECK_FALSE(event.under_way());
      CHECK(event.activity == Activity::communicating);
      CHECK((event.message == FlightMessage::send) == (rank == 0 && event.text == "send"));
      CHECK(event.peer == (event.message == FlightMessage::none ? -1 : 2 - rank));
      calls.push_back(format("{}.{} {}", event.step, event.number, event.text));
    }
    std::vector<std::string> expected;
    for (int step = 1; step <= 2; ++step) {
      expected.push_back(format("{}.0 all_reduce of bucket 0 (c1 ... fc)", step));
      if (rank != 1) expected.push_back(format("{}.1 {}", step, rank == 0 ? "send" : "receive"));
    }
    CHECK(calls == expected);
    if (rank != 1) CHECK(line_of(state, {0, 2, 2}).events.size() == 4);
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace trainctl::test::recorded_test
