// Timestamps of the GPU's progress in memory that the host reads (backend.h: Marks).
#pragma once

#include <memory>

#include "core/backend/backend.h"

namespace trainctl::cuda {

std::unique_ptr<Marks> make_marks(int count);

}  // namespace trainctl::cuda
