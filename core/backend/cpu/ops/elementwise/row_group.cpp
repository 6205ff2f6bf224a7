// Elementwise ops and reductions of rows that run together: each thread runs all of them for a few rows at a time.
#include "core/backend/cpu/ops/elementwise/row_group.h"

#include <omp.h>

#include <array>
#include <memory>
#include <optional>

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/ops/elementwise/elementwise_kernel.h"
#include "core/backend/cpu/ops/reduce_rows.h"
#include "core/graph/ops/row_group.h"

namespace trainctl::cpu {
namespace {

constexpr std::int64_t tile_values = 4096;  // of a tensor that are computed before the next op runs

// A tensor of the ops, as its rows or for all rows.
struct RowTensor {
  std::int64_t row_bytes = 0;  // 0: the whole tensor is for all rows
  std::int64_t buffer = -1;    // of a tensor between the ops: its offset in the thread's memory, in bytes
};

// An op for a number of rows.
struct RowStep {
  std::optional<ElementwiseKernel> elementwise;
  std::shared_ptr<const OpDef> reduce;  // where `elementwise` is empty
  DType reduced = DType::float32;
  std::int64_t rows = 0, count = 0;  // that are reduced
};

struct RowGroupKernel {
  std::vector<SubOp> ops;
  std::vector<RowTensor> tensors;
  std::vector<RowStep> steps, last_steps;  // for `rows_of_tile` rows, and for the rows of the last tile
  std::int64_t rows = 0, rows_of_tile = 1, inputs = 0, outputs = 0, buffers_bytes = 0, workspace_bytes = 0;

  std::int64_t tiles() const { return divide_up(rows, rows_of_tile); }
  std::int64_t thread_bytes() const { return buffers_bytes + workspace_bytes; }

  void run(const Buffers& given, std::int64_t begin, std::int64_t end, std::byte* memory) const {
    std::array<const void*, ElementwiseKernel::most_values> from;
    std::array<void*, ElementwiseKernel::most_values> to;
    auto* workspace = reinterpret_cast<float*>(memory + buffers_bytes);
    const auto address = [&](int number, std::int64_t row) -> std::byte* {
      const RowTensor& of = tensors[static_cast<std::size_t>(number)];
      if (of.buffer >= 0) return memory + of.buffer;
      const auto at = static_cast<std::size_t>(number);
      auto* base = number < inputs ? const_cast<std::byte*>(static_cast<const std::byte*>(given.in<void>(at)))
                                   : static_cast<std::byte*>(given.out<void>(at - static_cast<std::size_t>(inputs)));
      return base + row * of.row_bytes;
    };
    for (std::int64_t tile = begin; tile < end; ++tile) {
      const std::int64_t row = tile * rows_of_tile;
      const auto& of_tile = row + rows_of_tile > rows ? last_steps : steps;
      for (std::size_t k = 0; k < ops.size(); ++k) {
        for (std::size_t i = 0; i < ops[k].inputs.size(); ++i) from[i] = address(ops[k].inputs[i], row);
        for (std::size_t i = 0; i < ops[k].outputs.size(); ++i) to[i] = address(ops[k].outputs[i], row);
        const RowStep& step = of_tile[k];
        if (step.elementwise) {
          step.elementwise->run(from.data(), to.data(), 0, step.elementwise->blocks(), workspace);
        } else {
          reduce_rows(static_cast<const Reduce&>(*step.reduce), step.reduced, from[0], step.rows, step.count, to[0]);
        }
      }
    }
  }
};

// The shape of `count` rows of a tensor, or of a tensor for all rows, in an op with outputs of `rank` dimensions.
Shape tile_shape(const Shape& shape, bool is_whole, std::int64_t count, std::int64_t row_dimensions,
                 std::int64_t rank) {
  std::vector<std::int64_t> sizes = shape.sizes();
  const std::int64_t dropped = is_whole ? shape.rank() - (rank - row_dimensions) : row_dimensions;
  if (dropped > 0) sizes.erase(sizes.begin(), sizes.begin() + dropped);
  if (!is_whole) sizes.insert(sizes.begin(), count);
  return Shape(std::move(sizes));
}

std::vector<RowStep> steps_for(const RowGroup& def, const std::vector<TensorType>& types, std::int64_t count) {
  std::vector<RowStep> steps;
  for (const SubOp& of : def.ops) {
    std::vector<TensorType> inputs;
    for (const int number : of.inputs) inputs.push_back(types[static_cast<std::size_t>(number)]);
    const Shape y = types[static_cast<std::size_t>(of.outputs[0])].shape;
    RowStep step;
    if (const auto* elementwise = dynamic_cast<const Elementwise*>(of.def.get())) {
      const std::span<const std::int64_t> rows(y.sizes().data(), static_cast<std::size_t>(def.row_dimensions));
      const auto whole = inputs_of_all_rows(*of.def, inputs, rows);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        inputs[i].shape = tile_shape(inputs[i].shape, (*whole)[i], count, def.row_dimensions, y.rank());
      }
      step.elementwise.emplace(*elementwise, inputs, tile_shape(y, false, count, def.row_dimensions, y.rank()));
    } else {
      const Shape& x = inputs[0].shape;
      step.reduce = of.def;
      step.reduced = inputs[0].dtype;
      step.count = 1;
      for (std::int64_t d = static_cast<const Reduce&>(*of.def).begin; d < x.rank(); ++d) step.count *= x[d];
      step.rows = tile_shape(x, false, count, def.row_dimensions, x.rank()).count() / step.count;
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

// The numbers of the tensors that all rows read whole.
std::vector<bool> whole_tensors(const RowGroup& def, const std::vector<TensorType>& types) {
  std::vector<bool> found(types.size(), false);
  for (const SubOp& of : def.ops) {
    std::vector<TensorType> inputs;
    for (const int number : of.inputs) inputs.push_back(types[static_cast<std::size_t>(number)]);
    const Shape& y = types[static_cast<std::size_t>(of.outputs[0])].shape;
    const auto whole =
        inputs_of_all_rows(*of.def, inputs, {y.sizes().data(), static_cast<std::size_t>(def.row_dimensions)});
    require(whole.has_value(), "row_group: an op does not compute row by row");
    for (std::size_t i = 0; i < inputs.size(); ++i) found[static_cast<std::size_t>(of.inputs[i])] = (*whole)[i];
  }
  return found;
}

RowGroupKernel make_kernel(const RowGroup& def, const std::vector<TensorType>& types) {
  RowGroupKernel kernel{.ops = def.ops, .inputs = def.inputs_count, .outputs = def.outputs_count};
  const Shape& y = types[static_cast<std::size_t>(def.inputs_count)].shape;
  kernel.rows = 1;
  for (int d = 0; d < def.row_dimensions; ++d) kernel.rows *= y[d];
  const std::vector<bool> whole = whole_tensors(def, types);
  std::int64_t longest = 1;
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (!whole[i]) longest = std::max(longest, types[i].shape.count() / kernel.rows);
  }
  kernel.rows_of_tile = std::min(kernel.rows, std::max<std::int64_t>(1, tile_values / longest));
  for (std::size_t i = 0; i < types.size(); ++i) {
    RowTensor tensor{.row_bytes = whole[i] ? 0 : types[i].bytes() / kernel.rows};
    if (static_cast<std::int64_t>(i) >= kernel.inputs + kernel.outputs) {
      tensor.buffer = kernel.buffers_bytes;
      kernel.buffers_bytes += workspace_section(kernel.rows_of_tile * tensor.row_bytes);
    }
    kernel.tensors.push_back(tensor);
  }
  kernel.steps = steps_for(def, types, kernel.rows_of_tile);
  const std::int64_t rest = kernel.rows % kernel.rows_of_tile;
  if (rest > 0) kernel.last_steps = steps_for(def, types, rest);
  for (const auto* steps : {&kernel.steps, &kernel.last_steps}) {
    for (const RowStep& step : *steps) {
      if (!step.elementwise) continue;
      const std::int64_t bytes = step.elementwise->workspace() * static_cast<std::int64_t>(sizeof(float));
      kernel.workspace_bytes = std::max(kernel.workspace_bytes, workspace_section(bytes));
    }
  }
  return kernel;
}

}  // namespace

Lowering lower_row_group(const LowerContext& context) {
  const auto& def = context.op.as<RowGroup>();
  std::vector<TensorType> inputs;
  for (std::size_t i = 0; i < context.op.inputs.size(); ++i) inputs.push_back(context.input(i));
  const auto kernel = std::make_shared<const RowGroupKernel>(make_kernel(def, def.types(inputs)));
  return own_kernel(
      context,
      [kernel](const Buffers& buffers) {
        auto* memory = buffers.workspace<std::byte>();
        parallel_ranges(kernel->tiles(), 1, [&](std::int64_t begin, std::int64_t end) {
          kernel->run(buffers, begin, end, memory + omp_get_thread_num() * kernel->thread_bytes());
        });
      },
      context.threads * kernel->thread_bytes());
}

}  // namespace trainctl::cpu
