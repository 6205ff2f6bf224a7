// The time between two looks at files.
#pragma once

#include <poll.h>

namespace trainctl {

// Waits, at most until a signal comes.
inline void pause_for(int milliseconds) { poll(nullptr, 0, milliseconds); }

}  // namespace trainctl
