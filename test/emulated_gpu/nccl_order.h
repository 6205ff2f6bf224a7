// The order in which the calls of several emulated NCCL communicators of a process run.
//
// With TRAINCTL_EMULATED_NCCL_ONE_QUEUE=1 the calls of all communicators run one after the other in the order in which
// they were queued, as on a GPU whose streams share one hardware queue. TRAINCTL_EMULATED_NCCL_VERSION is NCCL's
// version, by default that of the header. Before 2.26, and in later versions without NCCL_LAUNCH_ORDER_IMPLICIT=1, a
// call is refused if a call of another communicator is not finished on another stream (NCCL itself might hang). Both
// concern only calls that are not captured: a graph runs its calls one after the other.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

namespace emulated {

int nccl_version();
bool is_captured(cudaStream_t stream);

// Returns the call in its order, or nothing if it is refused.
std::function<void()> in_launch_order(const void* communicator, cudaStream_t stream, std::function<void()> run);

}  // namespace emulated
