// The numbers that the emulated NCCL reduces.
#pragma once

#include <nccl.h>

#include <cstddef>

namespace emulated {

// Returns the bytes of a number.
std::size_t size_of(ncclDataType_t type);

// Replaces each number at `to` by its sum, minimum or maximum with the number at `from`.
void reduce(ncclDataType_t type, ncclRedOp_t operation, void* to, const void* from, std::size_t count);

}  // namespace emulated
