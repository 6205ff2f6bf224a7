// Several copies as one launch.
#pragma once

#include <cuda_runtime_api.h>

#include <span>

#include "core/backend/backend.h"

namespace trainctl::cuda {

// Backend::copy_all(). Copies large parts that are not made of aligned packs of 16 bytes on both sides by a
// cudaMemcpyAsync each.
void copy_parts(std::span<const CopyPart> parts, cudaStream_t stream);

}  // namespace trainctl::cuda
