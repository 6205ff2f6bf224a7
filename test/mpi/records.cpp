// Compares the entries of a flight record with the calls that were made.
#include "test/mpi/records.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "core/backend/communicator.h"
#include "core/base/flight_record.h"
#include "core/base/flight_state.h"
#include "core/base/format.h"

using namespace trainctl;

namespace {

void require_equal(const FlightEvent& event, const FlightEvent& expected) {
  const auto fields = [](const FlightEvent& of) {
    return format("{} '{}', step {}, call {}, message {}, peer {}", name_of(of.activity), of.text, of.step, of.number,
                  static_cast<int>(of.message), of.peer);
  };
  if (fields(event) == fields(expected) && !event.under_way() && event.begin <= event.end) return;
  throw std::runtime_error(format("recorded was {}, but the call is {}", fields(event), fields(expected)));
}

}  // namespace

void record_calls(Communicator& communicator, const View& value, Stream& stream) {
  std::string folder = std::filesystem::temp_directory_path() / "mpi-records-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no temporary folder");
  const int rank = communicator.rank(), size = communicator.size();
  FlightRecord record(folder, rank, size, "here");
  communicator.attendance().set_flight(&record);
  std::vector<FlightEvent> expected;
  std::int32_t number = 0;  // in the step
  const auto expect = [&](const char* text, FlightMessage message = FlightMessage::none, int peer = -1) {
    expected.push_back({.activity = Activity::communicating,
                        .step = record.step(),
                        .number = number++,
                        .text = text,
                        .message = message,
                        .peer = peer});
  };
  for (const int step : {7, 8}) {
    record.set_step(step);
    number = 0;
    communicator.describe_next("all_reduce of bucket 3 (conv5 ... fc1)");
    communicator.all_reduce(value, Reduction::sum, stream);
    expect("all_reduce of bucket 3 (conv5 ... fc1)");
    communicator.broadcast(value, 0, stream);
    expect("broadcast");
    if (size > 1 && rank < 2) {
      rank == 0 ? communicator.send(value, 1, stream) : communicator.receive(value, 0, stream);
      expect(rank == 0 ? "send" : "receive", rank == 0 ? FlightMessage::send : FlightMessage::receive, 1 - rank);
    }
    communicator.barrier(stream);
    expect("barrier");
  }
  stream.synchronize();
  communicator.attendance().set_flight(nullptr);
  const FlightState state = read_flight_record(record.path());
  std::filesystem::remove_all(folder);
  const auto line = std::find_if(state.lines.begin(), state.lines.end(), [](const FlightHistory& each) {
    return each.thread == FlightThread::communication && !each.events.empty() &&
           each.events.front().text.starts_with("all_reduce of bucket 3");
  });
  if (line == state.lines.end()) throw std::runtime_error("the communicator has no line in the record");
  if (line->group != FlightGroup{0, 1, size} || line->events.size() != expected.size()) {
    throw std::runtime_error(format("the line has {} events of {} ranks", line->events.size(), line->group.count));
  }
  for (std::size_t i = 0; i < expected.size(); ++i) require_equal(line->events[i], expected[i]);
}
