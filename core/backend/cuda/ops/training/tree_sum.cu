// Adds values in the order of a tree.
#include "core/graph/ops/training/tree_sum.h"

#include "core/backend/cuda/device/grid.h"
#include "core/backend/cuda/kernels.h"

namespace trainctl::cuda {
namespace {

// The number of values that may be on the stack: more than a tree of 256 summands has levels.
constexpr int max_stack = 18;
constexpr int max_inputs = 32;

// The argument of the kernel: the inputs, and for each summand its input, its part of that input, and the number of
// additions after it.
struct Summands {
  const float* inputs[max_inputs];
  std::uint8_t input[max_summands];
  std::uint8_t merges[max_summands];
  std::uint16_t part[max_summands];
  int count = 0;
};

__global__ void tree_sum(const Summands x, std::int64_t count, float* y) {
  for (std::int64_t i = first_element(); i < count; i += element_stride()) {
    float stack[max_stack] = {};
    int depth = 0;
    for (int s = 0; s < x.count; ++s) {
      stack[depth++] = x.inputs[x.input[s]][x.part[s] * count + i];
      for (int merge = x.merges[s]; merge > 0; --merge) {
        --depth;
        stack[depth - 1] += stack[depth];
      }
    }
    y[i] = stack[0];
  }
}

}  // namespace

Lowering lower_tree_sum(const LowerContext& context) {
  const auto& def = context.op.as<TreeSum>();
  const std::int64_t count = context.output(0).shape.count();
  const std::size_t inputs = context.op.inputs.size();
  require(inputs <= max_inputs, "tree_sum: more than 32 inputs");
  Summands x;
  for (const Summand& summand : def.summands) {
    x.input[x.count] = static_cast<std::uint8_t>(summand.input);
    x.part[x.count] = static_cast<std::uint16_t>(summand.part);
    x.merges[x.count++] = static_cast<std::uint8_t>(summand.merges);
  }
  return own_kernel(context, [=](const Buffers& p) {
    Summands bound = x;
    for (std::size_t i = 0; i < inputs; ++i) bound.inputs[i] = p.in<float>(static_cast<int>(i));
    launch(tree_sum, blocks_for(count), block_threads, p.stream, bound, count, p.out<float>(0));
  });
}

}  // namespace trainctl::cuda
