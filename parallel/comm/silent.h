// A communicator without peers that stands for one of many: the ops of a rank can be timed without the others.
#pragma once

#include <functional>
#include <memory>

#include "core/backend/backend.h"
#include "core/backend/communicator.h"

namespace trainctl {

// Rank `rank` of `size`, whose calls return at once: nothing is reduced, every part that is gathered is the rank's own,
// and what is received is random (numbers around 0; whole ones 0 or 1), so that no op works on zeros or on values that
// overflow. `reduced`, where given, stands for what peers add: it is called with the data of every all_reduce. Memory
// comes from `memory`, as in a run that reduces in place there, which outlives the result as the backend does.
std::unique_ptr<Communicator> silent_communicator(int rank, int size, Backend& backend, Communicator& memory,
                                                  std::function<void(View)> reduced = {});

}  // namespace trainctl
