// Several copies as one launch.
#pragma once

#include <cuda_runtime_api.h>

#include <span>

#include "core/backend/backend.h"

namespace trainctl::cuda {

// As Backend::copy_all(). Large parts that do not lie in packs of 16 bytes on both sides are left to CUDA, one by one.
void copy_parts(std::span<const CopyPart> parts, cudaStream_t stream);

}  // namespace trainctl::cuda
