// A small try of what a device computes with.
#pragma once

#include "core/backend/backend.h"

namespace trainctl {

// Runs a tiny dense product and a tiny convolution, and looks at their results. Throws Error{resource} that names the
// one that is wrong, and what the device's libraries throw.
void try_kernels(Backend& backend);

}  // namespace trainctl
