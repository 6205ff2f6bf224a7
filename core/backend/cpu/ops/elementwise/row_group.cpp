// Elementwise ops and reductions of rows that run together: each thread runs all of them for a few rows at a time.
#include "core/backend/cpu/ops/elementwise/row_group.h"

#include <omp.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/ops/elementwise/elementwise_kernel.h"
#include "core/backend/cpu/ops/elementwise/row_steps.h"
#include "core/backend/cpu/ops/reduce_rows.h"

namespace trainctl::cpu {
namespace {

constexpr std::int64_t tile_values = 8192;  // of a tensor that are computed before the next step runs

std::size_t at(std::int64_t number) { return static_cast<std::size_t>(number); }

// A tensor of the ops, as its rows or for all rows.
struct RowTensor {
  std::int64_t row_bytes = 0;  // 0: the whole tensor is for all rows
  std::int64_t buffer = -1;    // of a tensor between the steps: its offset in the thread's memory, in bytes
  std::int64_t sums = -1;      // of a sum over all rows: the offset of the sums of all pieces, in float values
};

// The programs of the steps for a number of rows; none for steps that only reduce.
using StepKernels = std::vector<std::optional<ElementwiseKernel>>;

// The rows are computed in tiles. A thread computes all tiles of a piece, the rows whose sums are added one after the
// other (rows_of_piece()). Without sums over all rows, a piece is a tile.
struct RowGroupKernel {
  std::shared_ptr<const OpDef> def;  // to which the steps refer
  std::vector<RowStep> steps;
  std::vector<RowTensor> tensors;
  std::map<std::int64_t, StepKernels> kernels;  // by the number of rows of a tile
  std::int64_t rows = 0, rows_of_tile = 1, rows_of_piece = 1, inputs = 0;
  std::int64_t buffers_bytes = 0, workspace_bytes = 0, sums = 0;

  std::int64_t pieces() const { return divide_up(rows, rows_of_piece); }
  std::int64_t thread_bytes() const { return buffers_bytes + workspace_bytes; }
  std::int64_t sums_bytes() const { return workspace_section(sums * static_cast<std::int64_t>(sizeof(float))); }

  // Computes a piece with the memory of a thread. `all_sums` are the sums of all pieces.
  void run(const Buffers& given, std::int64_t piece, float* all_sums, std::byte* memory) const {
    const std::int64_t first = piece * rows_of_piece, last = std::min(rows, first + rows_of_piece);
    for (std::int64_t row = first; row < last; row += rows_of_tile) {
      run_tile(given, piece, row, std::min(rows_of_tile, last - row), all_sums, memory);
    }
  }

  // Adds the sums of the pieces.
  void join(const Buffers& given, const float* all_sums) const {
    for (const RowStep& step : steps) {
      for (const RowStepSum& of : step.sums) {
        if (of.of_rows) continue;
        float* const to = given.out<float>(at(of.to - inputs));
        join_pieces(all_sums + tensors[at(of.to)].sums, pieces(), of.count, of.reduce->scale, to);
      }
    }
  }

 private:
  void run_tile(const Buffers& given, std::int64_t piece, std::int64_t row, std::int64_t count, float* all_sums,
                std::byte* memory) const {
    std::array<const void*, ElementwiseKernel::most_values> from;
    std::array<void*, ElementwiseKernel::most_values> to;
    const auto address = [&](int number) -> void* {
      const RowTensor& of = tensors[at(number)];
      if (of.buffer >= 0) return memory + of.buffer;
      const std::int64_t offset = row * of.row_bytes;
      if (number < inputs)
        return const_cast<std::byte*>(static_cast<const std::byte*>(given.in<void>(at(number)))) + offset;
      return static_cast<std::byte*>(given.out<void>(at(number - inputs))) + offset;
    };
    const StepKernels& programs = kernels.at(count);
    for (std::size_t k = 0; k < steps.size(); ++k) {
      const RowStep& step = steps[k];
      for (std::size_t i = 0; i < step.inputs.size(); ++i) from[i] = address(step.inputs[i]);
      if (step.reduce != nullptr) {
        const std::int64_t values = reduced_values(step);
        const std::int64_t each = step.shape.count() / rows / values;
        reduce_rows(*step.reduce, step.dtypes[0], from[0], count * each, values, address(step.results[0]));
        continue;
      }
      for (std::size_t r = 0; r < step.results.size(); ++r) {
        to[r] = step.is_written[r] ? address(step.results[r]) : nullptr;
      }
      std::array<SumTarget, RowStep::most_sums> targets;
      for (std::size_t s = 0; s < step.sums.size(); ++s) {
        const RowStepSum& of = step.sums[s];
        if (of.of_rows) {
          targets[s].rows = RowSums(*of.reduce, of.count, address(of.to));
        } else {
          float* const sums = all_sums + tensors[at(of.to)].sums + piece * of.count;
          targets[s].columns = ColumnSums(of.count, row - piece * rows_of_piece, sums);
        }
      }
      programs[k]->run(from.data(), to.data(), reinterpret_cast<float*>(memory + buffers_bytes), targets.data());
    }
  }

  static std::int64_t reduced_values(const RowStep& step) {
    std::int64_t values = 1;
    for (std::int64_t d = step.reduce->begin; d < step.shape.rank(); ++d) values *= step.shape[d];
    return values;
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

StepKernels kernels_for(const RowGroup& def, const std::vector<RowStep>& steps, const std::vector<TensorType>& types,
                        const std::vector<bool>& is_whole, std::int64_t count) {
  StepKernels kernels;
  for (const RowStep& step : steps) {
    if (step.reduce != nullptr) {
      kernels.emplace_back();
      continue;
    }
    std::vector<TensorType> inputs;
    for (const int number : step.inputs) {
      const TensorType& type = types[at(number)];
      inputs.push_back(
          {tile_shape(type.shape, is_whole[at(number)], count, def.row_dimensions, step.shape.rank()), type.dtype});
    }
    const Shape shape = tile_shape(step.shape, false, count, def.row_dimensions, step.shape.rank());
    std::vector<ResultSum> sums;
    for (const RowStepSum& of : step.sums) sums.push_back({of.result, of.of_rows});
    kernels.emplace_back(
        ElementwiseKernel(Elementwise(step.program, step.dtypes), inputs, shape, std::move(sums), step.is_written));
  }
  return kernels;
}

// The numbers of the tensors that are for all rows.
std::vector<bool> whole_tensors(const RowGroup& def, const std::vector<TensorType>& types) {
  std::vector<bool> found(types.size(), false);
  const std::vector<std::int64_t> rows = def.row_sizes(types);
  for (const SubOp& of : def.ops) {
    std::vector<TensorType> inputs;
    for (const int number : of.inputs) inputs.push_back(types[at(number)]);
    const auto whole = inputs_of_all_rows(*of.def, inputs, rows);
    require(whole.has_value(), "row_group: an op does not compute row by row");
    for (std::size_t i = 0; i < inputs.size(); ++i) found[at(of.inputs[i])] = (*whole)[i];
    if (is_sum_of_rows(*of.def, inputs[0], def.row_dimensions)) found[at(of.outputs[0])] = true;
  }
  return found;
}

// Assigns places in a thread's memory to the tensors that later steps read. Two tensors share memory if no step needs
// both.
void place_buffers(const RowGroup& def, RowGroupKernel& kernel) {
  struct Placed {
    std::int64_t begin, end;
    std::size_t last_step;
  };
  std::vector<std::size_t> last_read(kernel.tensors.size(), 0);
  for (std::size_t k = 0; k < kernel.steps.size(); ++k) {
    for (const int number : kernel.steps[k].inputs) last_read[at(number)] = k;
  }
  std::vector<Placed> placed;
  const auto place = [&](int number, std::size_t step) {
    RowTensor& tensor = kernel.tensors[at(number)];
    if (number < def.inputs_count + def.outputs_count || tensor.buffer >= 0) return;
    std::erase_if(placed, [&](const Placed& of) { return of.last_step < step; });
    std::sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) { return a.begin < b.begin; });
    const std::int64_t bytes = workspace_section(kernel.rows_of_tile * tensor.row_bytes);
    std::int64_t begin = 0;
    for (const Placed& of : placed) {
      if (of.begin - begin >= bytes) break;
      begin = std::max(begin, of.end);
    }
    tensor.buffer = begin;
    placed.push_back({begin, begin + bytes, std::max(step, last_read[at(number)])});
    kernel.buffers_bytes = std::max(kernel.buffers_bytes, begin + bytes);
  };
  for (std::size_t k = 0; k < kernel.steps.size(); ++k) {
    const RowStep& step = kernel.steps[k];
    for (std::size_t r = 0; r < step.results.size(); ++r) {
      if (step.is_written[r]) place(step.results[r], k);
    }
    for (const RowStepSum& of : step.sums) place(of.to, k);
  }
}

RowGroupKernel make_kernel(const std::shared_ptr<const OpDef>& shared, const std::vector<TensorType>& inputs) {
  const auto& def = static_cast<const RowGroup&>(*shared);
  const std::vector<TensorType> types = def.types(inputs);
  RowGroupKernel kernel{.def = shared, .steps = row_steps(def, types), .rows = 1, .inputs = def.inputs_count};
  for (const std::int64_t size : def.row_sizes(types)) kernel.rows *= size;
  const std::vector<bool> whole = whole_tensors(def, types);
  std::int64_t longest = 1;
  for (std::size_t i = 0; i < types.size(); ++i) {
    kernel.tensors.push_back({.row_bytes = whole[i] ? 0 : types[i].bytes() / kernel.rows});
    if (!whole[i]) longest = std::max(longest, types[i].shape.count() / kernel.rows);
  }
  kernel.rows_of_tile = std::min(kernel.rows, std::max<std::int64_t>(1, tile_values / longest));
  kernel.rows_of_piece = kernel.rows_of_tile;
  for (const RowStep& step : kernel.steps) {
    for (const RowStepSum& of : step.sums) {
      if (of.of_rows) continue;
      kernel.rows_of_piece = rows_of_piece(kernel.rows);
      kernel.tensors[at(of.to)].sums = kernel.sums;
      kernel.sums += divide_up(kernel.rows, kernel.rows_of_piece) * of.count;
    }
  }
  kernel.rows_of_tile = std::min(kernel.rows_of_tile, kernel.rows_of_piece);
  place_buffers(def, kernel);
  const std::int64_t last_piece = kernel.rows - (kernel.pieces() - 1) * kernel.rows_of_piece;
  for (const std::int64_t of_piece : {std::min(kernel.rows, kernel.rows_of_piece), last_piece}) {
    for (const std::int64_t count : {std::min(kernel.rows_of_tile, of_piece), of_piece % kernel.rows_of_tile}) {
      if (count == 0 || kernel.kernels.contains(count)) continue;
      StepKernels& made = kernel.kernels[count] = kernels_for(def, kernel.steps, types, whole, count);
      for (const std::optional<ElementwiseKernel>& of : made) {
        const std::int64_t bytes = of ? of->workspace() * static_cast<std::int64_t>(sizeof(float)) : 0;
        kernel.workspace_bytes = std::max(kernel.workspace_bytes, workspace_section(bytes));
      }
    }
  }
  return kernel;
}

}  // namespace

Lowering lower_row_group(const LowerContext& context) {
  std::vector<TensorType> inputs;
  for (std::size_t i = 0; i < context.op.inputs.size(); ++i) inputs.push_back(context.input(i));
  const auto kernel = std::make_shared<const RowGroupKernel>(make_kernel(context.op.def, inputs));
  return own_kernel(
      context,
      [kernel](const Buffers& buffers) {
        auto* const sums = buffers.workspace<float>();
        std::byte* const memory = buffers.workspace<std::byte>() + kernel->sums_bytes();
        parallel_ranges(kernel->pieces(), 1, [&](std::int64_t begin, std::int64_t end) {
          std::byte* const own = memory + omp_get_thread_num() * kernel->thread_bytes();
          for (std::int64_t piece = begin; piece < end; ++piece) kernel->run(buffers, piece, sums, own);
        });
        kernel->join(buffers, sums);
      },
      kernel->sums_bytes() + context.threads * kernel->thread_bytes());
}

}  // namespace trainctl::cpu
