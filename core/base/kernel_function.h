// Macros for functions that the kernels of every device inline: every compiler compiles them for the processor, nvcc
// for GPUs too.
#pragma once

#ifdef __CUDACC__
#define TRAINCTL_KERNEL_FUNCTION __host__ __device__ __forceinline__
#define TRAINCTL_KERNEL_LAMBDA
#else
#define TRAINCTL_KERNEL_FUNCTION __attribute__((always_inline)) inline
#define TRAINCTL_KERNEL_LAMBDA __attribute__((always_inline))
#endif
