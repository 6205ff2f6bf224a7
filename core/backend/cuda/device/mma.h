// Multiplies small matrices on a warp's tensor cores, and reads such matrices from shared memory.
//
// The layouts are those of PTX's mma.sync.m16n8k16 and ldmatrix: lane 4 g + t holds, of a 16x16 matrix A, the pairs
// (row g, columns 2t and 2t + 1), (g + 8, 2t), (g, 2t + 8), (g + 8, 2t + 8); of a 16x8 matrix B the pairs (rows 2t and
// 2t + 1, column g), (2t + 8, g); of a 16x8 sum the values (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1).
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <type_traits>

namespace trainctl::cuda {

// sum += A B, for matrices of T, __nv_bfloat16 or __half. All lanes of the warp must call this function.
template <class T>
__device__ inline void multiply_add(float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  if constexpr (std::is_same_v<T, __half>) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
}

// Reads four 8x8 matrices of 2-byte values from shared memory. `row` of lane 8 i + r is the address of row r of matrix
// i, 16 bytes that are aligned to 16 bytes. Lane 4 g + t gets the pair (rows 2t and 2t + 1, column g) of each matrix.
__device__ inline void read_transposed(const void* row, unsigned (&pairs)[4]) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(pairs[0]), "=r"(pairs[1]), "=r"(pairs[2]), "=r"(pairs[3])
               : "r"(address)
               : "memory");
}

}  // namespace trainctl::cuda
