// The CUDA C++ source of a kernel that runs a program of elementwise functions.
#pragma once

#include <string>
#include <vector>

#include "core/expression/elementwise_program.h"
#include "core/graph/ops/elementwise/broadcast.h"

namespace trainctl::cuda {

// What a source is written for: all of it is constant in the source.
struct ElementwiseKernelSpec {
  ElementwiseProgram program;
  BroadcastView view;
  std::vector<DType> inputs, outputs;  // float32, bfloat16, float16, int32 or uint8; outputs are floating-point
};

struct ElementwiseSource {
  std::string text;
  std::int64_t packs = 1;  // neighbouring elements that one thread computes at a time, over the whole shape
};

inline constexpr const char* elementwise_kernel_name = "compute";
inline constexpr int elementwise_kernel_threads = 256;  // of a block

// The kernel `compute` has one argument by value: the addresses of all inputs, then those of all outputs. It may start
// with any number of one-dimensional blocks of elementwise_kernel_threads threads. It computes in float32. Outputs may
// be inputs of the same shape and dtype. Equal specs have equal sources. Throws Error{internal} if the spec has another
// dtype.
ElementwiseSource elementwise_source(const ElementwiseKernelSpec& spec);

}  // namespace trainctl::cuda
