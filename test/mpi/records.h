// The calls of a communicator in the flight records of real ranks.
#pragma once

namespace trainctl {
class Communicator;
class Stream;
struct View;
}  // namespace trainctl

// Makes calls on all ranks, and checks that the record of this rank has them with their fields. `value`: one number in
// the communicator's memory. Throws std::runtime_error.
void record_calls(trainctl::Communicator& communicator, const trainctl::View& value, trainctl::Stream& stream);
