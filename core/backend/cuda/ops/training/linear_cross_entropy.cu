// Computes the last product and its cross-entropy in chunks of rows: cuBLASLt's products, and one kernel for the rows.
#include "core/graph/ops/losses/linear_cross_entropy.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "core/backend/cuda/cublaslt/product.h"
#include "core/backend/cuda/device/column_sums.h"
#include "core/backend/cuda/device/elementwise.h"
#include "core/backend/cuda/kernels.h"
#include "core/backend/cuda/ops/training/loss_rows.h"

namespace trainctl::cuda {
namespace {

using Rule = SparseCategoricalCrossentropy;

// The logits of a chunk whose first row is row `first` of the op.
template <class T>
struct LogitRows {
  T* x;
  std::int64_t first;
  const std::int32_t* targets;
  const float* weights;  // null in evaluation
  std::int64_t rows_each;
  float* sums;
};

// Writes the class sums of the chunk's rows and, in training, their gradient in place of the logits. A label outside of
// the classes makes the gradient NaN.
template <class T>
__global__ void chunk_losses(RowGrid grid, Rule rule, Smoothing smoothing, float scale, LogitRows<T> chunk) {
  const RowTeam team(grid);
  const ColumnRange range{0, grid.values};
  const bool trains = chunk.weights != nullptr;
  for (std::int64_t row = team.first(); row < grid.rows; row += team.step()) {
    T* const x = chunk.x + row * grid.values;
    const std::int64_t number = chunk.first + row;
    const LossRow<T> own{team, x, trains ? x : nullptr};
    const float weight = trains ? chunk.weights[number / chunk.rows_each] : 1.0f;
    if (weight == 0) {  // skipped rows may hold any values, also NaN
      team.fill(x, [](int) { return 0.0f; });
      continue;
    }
    const float top = own.largest();
    float* const sums = chunk.sums + number * class_sums;
    const Sums<3> found = write_class_sums<Rule>(own, top, number, chunk.targets, range, smoothing, sums);
    if (!trains) continue;
    bool valid = true;
    const LossTarget target = loss_target<Rule>(chunk.targets, number, range, smoothing, valid);
    rule.of_sums(own, target, found, top, valid ? weight * scale : NAN);
  }
}

// The sizes of the op; x has the dtype in which it computes.
struct HeadShape {
  std::int64_t rows, in, classes;
  DType dtype;
  bool transposed, bias;
  bool fuses_bias = false;  // the products add the bias, which then has the dtype of x
};

// The product of a chunk of rows. The bias is added before the logits are rounded to the dtype, if cuBLASLt can do so.
ProductShape logits_product(const HeadShape& shape, std::int64_t rows) {
  return {.rows = rows,
          .columns = shape.classes,
          .inner = shape.in,
          .transpose_b = shape.transposed,
          .operand = shape.dtype,
          .result = shape.dtype,
          .epilogue = shape.fuses_bias ? Epilogue::bias : Epilogue::none};
}

// The kernels of a chunk of `rows` rows.
struct ChunkKernels {
  std::int64_t rows;
  Product logits;
  std::optional<Product> dx, dkernel;
  std::optional<ColumnSums> dbias;

  ChunkKernels(const LowerContext& context, const HeadShape& s, std::int64_t r, bool training, bool sum)
      : rows(r), logits(context.device, logits_product(s, r), context.choices, context.label()) {
    if (!training) return;
    dx.emplace(context.device, ProductShape{r, s.in, s.classes, false, !s.transposed, s.dtype, s.dtype},
               context.choices, context.label());
    const std::int64_t first = s.transposed ? s.classes : s.in, last = s.transposed ? s.in : s.classes;
    dkernel.emplace(context.device, ProductShape{first, last, r, true, false, s.dtype, DType::float32, sum},
                    context.choices, context.label());
    if (s.bias) dbias.emplace(s.dtype, r, s.classes);
  }
  std::int64_t workspace_bytes() const {
    std::int64_t bytes = logits.workspace_bytes();
    if (dx) bytes = std::max({bytes, dx->workspace_bytes(), dkernel->workspace_bytes()});
    return dbias ? std::max(bytes, dbias->workspace_bytes()) : bytes;
  }
};

// Queues the products that turn the gradient of a chunk's logits into those of x, the kernel and the bias.
void queue_gradients(const HeadShape& shape, const ChunkKernels& chunk, bool sum, std::int64_t offset,
                     const void* logits, const Buffers& p) {
  const void* const x = p.in<std::byte>(0) + offset;
  void* const scratch = p.workspace<void>();
  chunk.dx->run(p.stream, logits, p.in<void>(1), p.out<std::byte>(1) + offset, nullptr, scratch);
  chunk.dkernel->run(p.stream, shape.transposed ? logits : x, shape.transposed ? x : logits, p.out<void>(2), nullptr,
                     scratch);
  if (chunk.dbias) chunk.dbias->run(logits, sum, p.out<float>(3), scratch, p.stream);
}

// All chunks but the last have equal sizes, and the first one may overwrite the gradients.
std::vector<ChunkKernels> row_chunks_of(const LowerContext& context, const HeadShape& shape,
                                        const LinearCrossEntropy& def) {
  const std::int64_t each = chunk_rows(shape.rows, shape.classes, shape.dtype);
  std::vector<ChunkKernels> chunks;
  for (std::int64_t first = 0; first < shape.rows; first += each) {
    const std::int64_t rows = std::min(each, shape.rows - first);
    const bool is_like_last = chunks.size() > 1 && chunks.back().rows == rows;
    chunks.push_back(is_like_last ? chunks.back()
                                  : ChunkKernels(context, shape, rows, def.training, def.accumulate || first > 0));
  }
  return chunks;
}

// Whether cuBLASLt can add the bias in the products of all chunks.
bool can_fuse_bias(const LowerContext& context, HeadShape shape) {
  if (!shape.bias) return false;
  shape.fuses_bias = true;
  const std::int64_t each = chunk_rows(shape.rows, shape.classes, shape.dtype), rest = shape.rows % each;
  const auto is_offered_for = [&](std::int64_t rows) {
    return rows == 0 || is_offered(context.device, logits_product(shape, rows));
  };
  return is_offered_for(std::min(each, shape.rows)) && is_offered_for(rest);
}

template <class T>
Lowering lower_head(const LowerContext& context, const LinearCrossEntropy& def) {
  const Shape &x = context.input(0).shape, &kernel = context.input(1).shape;
  HeadShape shape{x.rows(),       x.back(),    kernel[def.transposed ? 0 : 1], context.input(0).dtype,
                  def.transposed, def.has_bias};
  shape.fuses_bias = can_fuse_bias(context, shape);
  const std::int64_t rows_each = def.training ? shape.rows / context.input(def.weights()).shape.count() : 1;
  std::vector<ChunkKernels> chunks = row_chunks_of(context, shape, def);
  std::int64_t scratch = 0;
  for (const ChunkKernels& chunk : chunks) scratch = std::max(scratch, chunk.workspace_bytes());
  scratch = workspace_section(scratch);
  const std::int64_t workspace = scratch + chunks.front().rows * shape.classes * size_of(shape.dtype);
  const std::string implementation = chunks.front().logits.implementation();
  const auto run = [=, smoothing = def.rule.smoothing(shape.classes), chunks = std::move(chunks)](const Buffers& p) {
    T* const logits = p.workspace<T>(scratch);
    std::int64_t first = 0;
    for (const ChunkKernels& chunk : chunks) {
      const std::int64_t offset = first * shape.in * size_of(shape.dtype);
      chunk.logits.run(p.stream, p.in<std::byte>(0) + offset, p.in<void>(1), logits,
                       shape.fuses_bias ? p.in<void>(2) : nullptr, p.workspace<void>());
      if (shape.bias && !shape.fuses_bias)
        bias_activate({}, shape.dtype, logits, p.in<float>(2), chunk.rows, shape.classes, p.stream);
      const RowGrid grid(chunk.rows, shape.classes);
      const LogitRows<T> rows{logits,
                              first,
                              p.in<std::int32_t>(def.targets()),
                              def.training ? p.in<float>(def.weights()) : nullptr,
                              rows_each,
                              p.out<float>(0)};
      launch(chunk_losses<T>, grid.blocks, block_threads, p.stream, grid, def.rule, smoothing, def.scale, rows);
      if (def.training) queue_gradients(shape, chunk, def.accumulate || first > 0, offset, logits, p);
      first += chunk.rows;
    }
  };
  Lowering lowering = own_kernel(context, run, workspace);
  lowering.inputs[1] = {shape.dtype, "", kernel.count() * size_of(shape.dtype)};
  if (shape.fuses_bias) lowering.inputs[2] = {shape.dtype, "", shape.classes * size_of(shape.dtype)};
  lowering.implementation = implementation;
  return lowering;
}

}  // namespace

Lowering lower_linear_cross_entropy(const LowerContext& context) {
  const auto& def = context.op.as<LinearCrossEntropy>();
  return with_type(context.input(0).dtype, [&](auto type) { return lower_head<decltype(type)>(context, def); });
}

}  // namespace trainctl::cuda
