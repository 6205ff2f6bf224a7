// The choice of a backend: the only place that knows which ones exist.
#pragma once

#include <memory>
#include <string_view>

#include "core/backend/backend.h"

namespace trainctl {

// `device` is the config's: auto, cpu or cuda. To be called and used on the thread that runs the rank. Throws
// Error{resource} where the device is not there.
std::unique_ptr<Backend> make_backend(std::string_view device, const BackendOptions& options = {});

}  // namespace trainctl
