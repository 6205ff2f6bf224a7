// Kernel choices kept for the user, one file for each hardware fingerprint.
#pragma once

#include <string>

#include "core/backend/choices.h"

namespace trainctl {

// Reads the choices that are kept for this hardware; empty where there are none, or where the file is damaged
// (io/kernels/user_cache.h).
KernelChoices load_kernel_choices(const std::string& fingerprint);

// Keeps them. A cache that cannot be written is no error: the choices are timed again next time.
void keep_kernel_choices(const std::string& fingerprint, const KernelChoices& choices);

}  // namespace trainctl
