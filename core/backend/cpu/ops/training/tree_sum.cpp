// Sums of tensors with additions in the order of a binary tree.
#include "core/graph/ops/training/tree_sum.h"

#include <algorithm>
#include <array>

#include "core/backend/cpu/kernels.h"

namespace trainctl::cpu {
namespace {

constexpr std::int64_t leaf = 256;
// The capacity of the stack, which is larger than the number of levels of a balanced tree of 256 summands.
constexpr std::size_t max_stack = 18;

// The summands of a sum: their addresses, and the number of additions after each.
struct Summands {
  std::array<const float*, max_summands> from;
  std::array<int, max_summands> merges;
  std::size_t count = 0;
};

// Computes one block of the sum. The last addition writes to y, since no summand is read after it.
inline TRAINCTL_INLINE void sum_block(const Summands& x, std::int64_t first, std::int64_t count, float* y) {
  std::array<const float*, max_stack> stack;
  alignas(64) float sums[max_stack][leaf];
  std::size_t depth = 0;
  for (std::size_t s = 0; s < x.count; ++s) {
    stack[depth++] = x.from[s] + first;
    for (int merge = x.merges[s]; merge > 0; --merge) {
      const bool last = s + 1 == x.count && merge == 1;
      float* sum = last ? y + first : sums[depth - 2];
      const float *a = stack[depth - 2], *b = stack[depth - 1];
#pragma omp simd
      for (std::int64_t i = 0; i < count; ++i) sum[i] = a[i] + b[i];
      stack[--depth - 1] = sum;
    }
  }
  if (stack[0] != y + first) std::copy_n(stack[0], count, y + first);
}

}  // namespace

Lowering lower_tree_sum(const LowerContext& context) {
  const auto& def = context.op.as<TreeSum>();
  const std::int64_t count = context.output(0).shape.count();
  int depth = 0, max_depth = 0;
  for (const Summand& summand : def.summands) {
    max_depth = std::max(max_depth, ++depth);
    depth -= summand.merges;
  }
  require(max_depth <= static_cast<int>(max_stack), "tree_sum: the tree is not balanced");
  return own_kernel(context, [=, summands = def.summands](const Buffers& buffers) {
    Summands x;
    for (const Summand& summand : summands) {
      x.from[x.count] = buffers.in<float>(summand.input) + summand.part * count;
      x.merges[x.count++] = summand.merges;
    }
    parallel_ranges(count, element_grain, [&x, y = buffers.out<float>(0)](std::int64_t begin, std::int64_t end) {
      simd([&]() TRAINCTL_INLINE {
        for (std::int64_t first = begin; first < end; first += leaf) {
          sum_block(x, first, std::min(leaf, end - first), y);
        }
      });
    });
  });
}

}  // namespace trainctl::cpu
