// Macros that mark functions which the kernels of every device inline. All compilers compile such functions for the
// CPU; nvcc also compiles them for GPUs.
#pragma once

#ifdef __CUDACC__
#define TRAINCTL_KERNEL_FUNCTION __host__ __device__ __forceinline__
#define TRAINCTL_KERNEL_LAMBDA
#else
#define TRAINCTL_KERNEL_FUNCTION __attribute__((always_inline)) inline
#define TRAINCTL_KERNEL_LAMBDA __attribute__((always_inline))
#endif
