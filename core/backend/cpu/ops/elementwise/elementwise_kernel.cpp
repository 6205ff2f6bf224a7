// Runs elementwise programs: reads blocks of the inputs, computes instruction by instruction, and writes the results.
#include "core/backend/cpu/ops/elementwise/elementwise_kernel.h"

#include <algorithm>
#include <array>

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/simd/narrowing.h"
#include "core/graph/ops/elementwise/broadcast.h"

namespace trainctl::cpu {
namespace {

TRAINCTL_INLINE inline float load_value(std::int32_t value) { return static_cast<float>(value); }
template <class T>
TRAINCTL_INLINE inline float load_value(T value) {
  return load(value);
}

// Reads `count` values, `step` (0 or 1) elements apart.
template <class T>
void read_values(const T* from, std::int64_t step, std::int64_t count, float* to) {
  simd([=]() TRAINCTL_INLINE {
    if (step == 0) {
      const float value = load_value(*from);
      for (std::int64_t i = 0; i < count; ++i) to[i] = value;
      return;
    }
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) to[i] = load_value(from[i]);
  });
}

void read_values(DType dtype, const void* base, std::int64_t offset, std::int64_t step, std::int64_t count, float* to) {
  switch (dtype) {
    case DType::float32:
      return read_values(static_cast<const float*>(base) + offset, step, count, to);
    case DType::bfloat16:
      return read_values(static_cast<const Bf16*>(base) + offset, step, count, to);
    case DType::int32:
      return read_values(static_cast<const std::int32_t*>(base) + offset, step, count, to);
    case DType::uint8:
      return read_values(static_cast<const std::uint8_t*>(base) + offset, step, count, to);
    default:
      require(false, "elementwise: an input has another dtype than float32, bfloat16, int32 and uint8");
  }
}

void write_values(DType dtype, const BlockOperand& from, std::int64_t offset, std::int64_t count, void* base) {
  const float* values = from.values;
  const bool is_constant = from.mask == 0;
  if (dtype == DType::float32) {
    float* to = static_cast<float*>(base) + offset;
    is_constant ? std::fill_n(to, count, *values) : std::copy_n(values, count, to);
    return;
  }
  Bf16* to = static_cast<Bf16*>(base) + offset;
  if (is_constant) {
    std::fill_n(to, count, store<Bf16>(*values));
    return;
  }
  narrow(values, count, to);
}

// What is needed of each result: its values, or values that are only added up.
std::vector<ResultUse> uses_of(const std::vector<ResultSum>& sums, const std::vector<bool>& is_written,
                               std::size_t results) {
  std::vector<ResultUse> uses(results);
  for (std::size_t r = 0; r < is_written.size(); ++r) uses[r].is_needed = is_written[r];
  for (std::size_t k = 0; k < sums.size(); ++k) {
    ResultUse& use = uses[sums[k].result];
    int& number = sums[k].of_rows ? use.row_sum : use.column_sum;
    use.is_needed = use.is_needed || number >= 0;
    if (number < 0) number = static_cast<int>(k);
  }
  return uses;
}

}  // namespace

ElementwiseKernel::ElementwiseKernel(const Elementwise& def, const std::vector<TensorType>& inputs, const Shape& to,
                                     std::vector<ResultSum> sums, const std::vector<bool>& is_written)
    : code_(compile_elementwise(def.program, uses_of(sums, is_written, def.dtypes.size()))),
      sums_(std::move(sums)),
      dtypes_(def.dtypes) {
  require(code_.values() <= static_cast<int>(most_values), "elementwise: the program has too many values");
  for (std::size_t r = 0; r < dtypes_.size(); ++r) {
    const auto here = code_.results.begin() + static_cast<std::ptrdiff_t>(r);
    const bool is_first = std::find(code_.results.begin(), here, *here) == here;
    is_direct_.push_back(is_first && *here < code_.registers && dtypes_[r] == DType::float32);
  }
  BroadcastView broadcast = broadcast_view(inputs, to);
  length_ = broadcast.sizes.back();
  rows_ = broadcast.count() / length_;
  sizes_ = std::move(broadcast.sizes);
  sizes_.pop_back();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    std::vector<std::int64_t>& strides = broadcast.strides[i];
    const std::int64_t step = strides.back();
    strides.pop_back();
    const bool same = length_ <= block && std::all_of(strides.begin(), strides.end(), [](auto of) { return of == 0; });
    inputs_.push_back({inputs[i].dtype, step, std::move(strides), same});
  }
}

std::int64_t ElementwiseKernel::rows_of_block() const { return std::max<std::int64_t>(1, block / length_); }

std::int64_t ElementwiseKernel::blocks() const { return divide_up(rows_, rows_of_block()) * divide_up(length_, block); }

std::int64_t ElementwiseKernel::workspace() const {
  return (code_.registers + code_.inputs + 1) * block + std::ssize(code_.constants) * constant_values;
}

ElementwiseKernel::Part ElementwiseKernel::part(std::int64_t number) const {
  const std::int64_t grouped = rows_of_block(), of_row = divide_up(length_, block);
  const std::int64_t row = number / of_row * grouped, first = number % of_row * block;
  return {row, std::min(grouped, rows_ - row), first, std::min(block, length_ - first)};
}

std::int64_t ElementwiseKernel::InputRows::offset(const std::vector<std::int64_t>& sizes, std::int64_t row) const {
  std::int64_t found = 0;
  for (std::size_t d = sizes.size(); d-- > 0;) {
    found += row % sizes[d] * strides[d];
    row /= sizes[d];
  }
  return found;
}

// Makes the values of an input available: where they are, if they are float32 one after the other.
BlockOperand ElementwiseKernel::read(const InputRows& input, const void* from, const Part& part, float* to) const {
  const std::int64_t begin = input.offset(sizes_, part.row) + part.first * input.step;
  const bool crosses_dimension =
      part.rows > 1 &&
      (input.strides.back() != length_ || part.row / sizes_.back() != (part.row + part.rows - 1) / sizes_.back());
  if (input.step == 1 && input.dtype == DType::float32 && !crosses_dimension) {
    return {static_cast<const float*>(from) + begin, -1};
  }
  if (input.step == 0 && part.rows == 1) {
    read_values(input.dtype, from, begin, 0, constant_values, to);
    return {to, 0};
  }
  for (std::int64_t r = 0; r < part.rows; ++r) {
    const std::int64_t offset = input.offset(sizes_, part.row + r) + part.first * input.step;
    read_values(input.dtype, from, offset, input.step, part.length, to + r * part.length);
  }
  return {to, -1};
}

void ElementwiseKernel::compute(Block& block) const {
  BlockOperand* const values = block.values;
  for (const ElementwiseInstruction& of : code_.instructions) {
    if (of.chooses && !of.writes_result) {
      if (const BlockOperand& condition = values[of.operands[0]]; condition.mask == 0) {
        values[of.to] = values[of.operands[*condition.values != 0 ? 1 : 2]];
        continue;
      }
      values[of.to].values = block.registers + of.to * ElementwiseKernel::block;
    }
    BlockOperand operands[most_operands];
    std::int64_t varies = of.writes_result ? -1 : 0;  // 0: the same value in the whole block
    for (int k = 0; k < of.operand_count; ++k) {
      operands[k] = values[of.operands[static_cast<std::size_t>(k)]];
      varies |= operands[k].mask;
    }
    if (block.targets != nullptr && compute_with_sum(of, operands, block)) continue;
    compute(of, operands, varies == 0 ? constant_values : block.count, block);
    for (const int to : {of.to, of.second}) {
      if (to >= 0) values[to].mask = varies;
    }
  }
}

void ElementwiseKernel::compute(const ElementwiseInstruction& of, BlockOperand* operands, std::int64_t count,
                                Block& block) const {
  float held[most_operands][constant_values];
  const auto address = [&](int number) { return const_cast<float*>(block.values[number].values); };
  for (int k = 0; k < of.operand_count && !of.writes_result; ++k) {
    // A value for the whole block must not be overwritten by the first results, if it is in their register.
    const bool is_overwritten =
        operands[k].values == address(of.to) || (of.second >= 0 && operands[k].values == address(of.second));
    if (operands[k].mask != 0 || !is_overwritten) continue;
    std::copy_n(operands[k].values, constant_values, held[k]);
    operands[k].values = held[k];
  }
  if (of.function == nullptr) {
    erf_and_gauss(operands[0], address(of.to), address(of.second), count);
  } else {
    run_function(of.function, operands, of.operand_count, address(of.to), count);
  }
}

bool ElementwiseKernel::compute_with_sum(const ElementwiseInstruction& of, BlockOperand* operands, Block& block) const {
  if (of.row_sum >= 0) {
    RowSums& sums = block.targets[of.row_sum].rows;
    float* const partial = sums.begin(block.offset, block.count);
    if (partial == nullptr) return false;
    float unused[constant_values];
    float* const to = of.keeps_values ? const_cast<float*>(block.values[of.to].values) : unused;
    run_chain_sum(of.with_row_sum, of.function, operands, of.operand_count, to, of.keeps_values ? -1 : 0, block.count,
                  partial);
    sums.end(block.offset, block.count);
    block.added |= 1u << of.row_sum;
    return true;
  }
  if (of.column_sum < 0) return false;
  const ColumnSums& sums = block.targets[of.column_sum].columns;
  float* const to = sums.at(block.offset, block.count);
  if (to == nullptr) return false;
  if (sums.is_first(block.offset)) {
    run_function(of.function, operands, of.operand_count, to, block.count);
  } else {
    operands[of.operand_count] = {to, -1};
    run_function(of.with_column_sum, operands, of.operand_count + 1, to, block.count);
  }
  block.added |= 1u << of.column_sum;
  return true;
}

void ElementwiseKernel::add_to_sums(const Block& block, float* repeated) const {
  for (std::size_t k = 0; k < sums_.size(); ++k) {
    if ((block.added >> k & 1) != 0) continue;
    const BlockOperand& result = block.values[code_.results[sums_[k].result]];
    if (result.mask == 0) std::fill_n(repeated, block.count, *result.values);
    const float* const values = result.mask == 0 ? repeated : result.values;
    if (sums_[k].of_rows) {
      block.targets[k].rows.add(values, block.offset, block.count);
    } else {
      block.targets[k].columns.add(values, block.offset, block.count);
    }
  }
}

void ElementwiseKernel::run(const void* const* inputs, void* const* outputs, std::int64_t begin, std::int64_t end,
                            float* workspace) const {
  run(inputs, outputs, begin, end, workspace, nullptr, false);
}

void ElementwiseKernel::run(const void* const* inputs, void* const* outputs, float* workspace,
                            SumTarget* targets) const {
  run(inputs, outputs, 0, blocks(), workspace, sums_.empty() ? nullptr : targets, true);
}

// `apart`: no output is an input.
void ElementwiseKernel::run(const void* const* inputs, void* const* outputs, std::int64_t begin, std::int64_t end,
                            float* workspace, SumTarget* targets, bool apart) const {
  float* const registers = workspace;
  float* const blocks_of_inputs = registers + code_.registers * block;
  float* const repeated = blocks_of_inputs + code_.inputs * block;
  float* const constants = repeated + block;
  std::array<BlockOperand, most_values> values;
  for (int r = 0; r < code_.registers; ++r) values[static_cast<std::size_t>(r)] = {registers + r * block, -1};
  for (std::size_t k = 0; k < code_.constants.size(); ++k) {
    float* const of = constants + static_cast<std::int64_t>(k) * constant_values;
    std::fill_n(of, constant_values, code_.constants[k]);
    values[static_cast<std::size_t>(code_.first_constant()) + k] = {of, 0};
  }
  const auto read_input = [&](std::size_t i, const Part& of) {
    values[static_cast<std::size_t>(code_.first_input()) + i] =
        read(inputs_[i], inputs[i], of, blocks_of_inputs + static_cast<std::int64_t>(i) * block);
  };
  const Part first_rows{0, std::min(rows_of_block(), rows_), 0, length_};
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].same_in_rows) read_input(i, first_rows);
  }
  const auto is_direct = [&](std::size_t r) {
    return is_direct_[r] && outputs[r] != nullptr && (apart || static_cast<int>(r) == code_.last_result);
  };
  for (std::int64_t b = begin; b < end; ++b) {
    const Part of = part(b);
    Block computed{of.row * length_ + of.first, of.rows * of.length, values.data(), registers, targets};
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (!inputs_[i].same_in_rows) read_input(i, of);
    }
    for (std::size_t r = 0; r < dtypes_.size(); ++r) {
      if (is_direct(r)) {
        values[static_cast<std::size_t>(code_.results[r])] = {static_cast<float*>(outputs[r]) + computed.offset, -1};
      }
    }
    compute(computed);
    if (targets != nullptr) add_to_sums(computed, repeated);
    // The first result comes last, since it may overwrite an input that another result still reads.
    for (std::size_t r = dtypes_.size(); r-- > 0;) {
      const BlockOperand& result = values[static_cast<std::size_t>(code_.results[r])];
      if (outputs[r] == nullptr || is_direct(r)) continue;
      write_values(dtypes_[r], result, computed.offset, computed.count, outputs[r]);
    }
  }
}

}  // namespace trainctl::cpu
