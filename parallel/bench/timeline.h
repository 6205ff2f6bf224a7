// A timeline of recorded steps that Perfetto and chrome://tracing open: all ranks in one file.
#pragma once

#include <string>

#include "core/backend/communicator.h"
#include "core/exec/observe/op_recorder.h"

namespace trainctl {

// Gathers what all ranks recorded on rank 0; "" on the others. The format is Chrome's trace event format, complete
// events
// ("ph": "X"), times in microseconds, one process for each rank. Collective.
std::string gather_timeline(const OpRecorder& recorder, Communicator& world, Stream& stream);

}  // namespace trainctl
