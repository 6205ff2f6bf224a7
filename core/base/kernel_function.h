// Functions that kernels of every device inline: compiled for the processor, and by nvcc for GPUs too.
#pragma once

#ifdef __CUDACC__
#define TRAINCTL_KERNEL_FUNCTION __host__ __device__ __forceinline__
#define TRAINCTL_KERNEL_LAMBDA
#else
#define TRAINCTL_KERNEL_FUNCTION __attribute__((always_inline)) inline
#define TRAINCTL_KERNEL_LAMBDA __attribute__((always_inline))
#endif
