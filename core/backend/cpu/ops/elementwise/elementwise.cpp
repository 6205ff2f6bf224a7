// Programs of elementwise functions: each thread runs a program step by step over blocks of values in its cache.
#include "core/graph/ops/elementwise/elementwise.h"

#include <omp.h>

#include <algorithm>
#include <memory>

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/simd/scalar_functions.h"
#include "core/graph/ops/elementwise/broadcast.h"

namespace trainctl::cpu {
namespace {

constexpr std::int64_t block = 512;  // values of a register
constexpr int most_registers = 512;

// An input by the rows of the output: element (row, i) is at row_offset(row) + i * step.
struct InputRows {
  DType dtype = DType::float32;
  std::int64_t step = 0;              // 0: one value for the whole row
  std::vector<std::int64_t> strides;  // of the dimensions of rows
};

// The output as rows, whose dimensions are merged where all inputs allow it.
struct RowView {
  std::int64_t length = 1, rows = 1;
  std::vector<std::int64_t> sizes;  // of the dimensions of rows
  std::vector<InputRows> inputs;
};

RowView row_view(const std::vector<TensorType>& inputs, const Shape& to) {
  BroadcastView broadcast = broadcast_view(inputs, to);
  RowView view;
  view.length = broadcast.sizes.back();
  view.rows = broadcast.count() / view.length;
  view.sizes = std::move(broadcast.sizes);
  view.sizes.pop_back();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    std::vector<std::int64_t>& strides = broadcast.strides[i];
    const std::int64_t step = strides.back();
    strides.pop_back();
    view.inputs.push_back({inputs[i].dtype, step, std::move(strides)});
  }
  return view;
}

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

void write_values(DType dtype, const float* from, std::int64_t offset, std::int64_t count, void* base) {
  if (dtype == DType::float32) {
    std::copy_n(from, count, static_cast<float*>(base) + offset);
    return;
  }
  Bf16* to = static_cast<Bf16*>(base) + offset;
  simd([=]() TRAINCTL_INLINE {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) to[i] = store<Bf16>(from[i]);
  });
}

// One step that computes: the registers of its operands and of its value.
struct Instruction {
  BlockFunction function = nullptr;
  int operands[3] = {0, 0, 0};
  int to = 0;
};

// A program with a register for each value that is needed at a time. Inputs and constants have registers of their own.
struct Compiled {
  std::vector<Instruction> instructions;
  std::vector<std::pair<int, float>> constants;  // register and value
  std::vector<int> inputs, results;              // registers
  int registers = 0;
};

Compiled compile_program(const ElementwiseProgram& program) {
  Compiled made;
  const auto count = program.steps.size();
  std::vector<std::size_t> last_use(count, 0);
  for (std::size_t i = 0; i < count; ++i) {
    for (const int operand : program.steps[i].operands) {
      if (operand >= 0) last_use[static_cast<std::size_t>(operand)] = i;
    }
  }
  for (const int result : program.results) last_use[static_cast<std::size_t>(result)] = count;
  std::vector<int> held(count, 0), free;
  made.inputs.assign(static_cast<std::size_t>(program.inputs), -1);
  for (std::size_t i = 0; i < count; ++i) {
    const ScalarStep& step = program.steps[i];
    if (operands_of(step.function) == 0) {
      held[i] = made.registers++;
      if (step.function == ScalarFunction::input) {
        made.inputs[static_cast<std::size_t>(step.index)] = held[i];
      } else {
        made.constants.emplace_back(held[i], static_cast<float>(step.value));
      }
      continue;
    }
    Instruction instruction{.function = block_function(step.function)};
    for (std::size_t k = 0; k < 3; ++k) {
      const int operand = step.operands[k];
      if (operand < 0) continue;
      instruction.operands[k] = held[static_cast<std::size_t>(operand)];
      const bool computes = operands_of(program.steps[static_cast<std::size_t>(operand)].function) > 0;
      const bool first = std::find(step.operands.begin(), step.operands.begin() + static_cast<std::ptrdiff_t>(k),
                                   operand) == step.operands.begin() + static_cast<std::ptrdiff_t>(k);
      if (computes && first && last_use[static_cast<std::size_t>(operand)] == i)
        free.push_back(instruction.operands[k]);
    }
    if (free.empty()) free.push_back(made.registers++);
    instruction.to = held[i] = free.back();
    free.pop_back();
    made.instructions.push_back(instruction);
  }
  for (const int result : program.results) made.results.push_back(held[static_cast<std::size_t>(result)]);
  require(made.registers <= most_registers, "elementwise: the program has too many values");
  return made;
}

// The kernel's data, which all threads share.
struct ElementwiseKernel {
  Compiled program;
  RowView view;
  std::vector<DType> dtypes;

  std::int64_t rows_of_block() const { return std::max<std::int64_t>(1, block / view.length); }

  // Runs the program for [begin, end) of the blocks, with the thread's registers.
  void run(const Buffers& buffers, std::int64_t begin, std::int64_t end, float* registers) const {
    const float* values[most_registers];  // the values of each register
    for (int r = 0; r < program.registers; ++r) values[r] = registers + r * block;
    for (const auto& [number, value] : program.constants) std::fill_n(registers + number * block, block, value);
    const std::int64_t grouped = rows_of_block(), of_row = divide_up(view.length, block);
    for (std::size_t i = 0; i < view.inputs.size(); ++i) {
      if (is_same_in_rows(i)) read(buffers, i, 0, std::min(grouped, view.rows), 0, view.length, registers, values);
    }
    for (std::int64_t b = begin; b < end; ++b) {
      const std::int64_t row = b / of_row * grouped, first = b % of_row * block;
      const std::int64_t rows = std::min(grouped, view.rows - row), length = std::min(block, view.length - first);
      for (std::size_t i = 0; i < view.inputs.size(); ++i) {
        if (!is_same_in_rows(i)) read(buffers, i, row, rows, first, length, registers, values);
      }
      for (const Instruction& of : program.instructions) {
        of.function(values[of.operands[0]], values[of.operands[1]], values[of.operands[2]], registers + of.to * block,
                    rows * length);
      }
      // The first result comes last, since it may overwrite an input that another result still reads.
      for (std::size_t r = dtypes.size(); r-- > 0;) {
        write_values(dtypes[r], values[program.results[r]], row * view.length + first, rows * length,
                     buffers.out<void>(r));
      }
    }
  }

 private:
  // Makes the values of an input available: by their address if they are float32 one after the other.
  void read(const Buffers& buffers, std::size_t input, std::int64_t row, std::int64_t rows, std::int64_t first,
            std::int64_t length, float* registers, const float** values) const {
    const InputRows& of = view.inputs[input];
    const int number = program.inputs[input];
    if (number < 0) return;
    float* to = registers + number * block;
    const void* base = buffers.in<void>(input);
    const bool one_after_another = of.step == 1 && (rows == 1 || of.strides.back() == view.length);
    if (one_after_another && of.dtype == DType::float32 && (rows == 1 || crosses_no_dimension(row, rows))) {
      values[number] = static_cast<const float*>(base) + offset(of, row) + first;
      return;
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      read_values(of.dtype, base, offset(of, row + r) + first * of.step, of.step, length, to + r * length);
    }
    values[number] = to;
  }

  // Whether an input has the same values in all rows, which fit into a register.
  bool is_same_in_rows(std::size_t input) const {
    const auto& strides = view.inputs[input].strides;
    return view.length <= block && std::all_of(strides.begin(), strides.end(), [](std::int64_t of) { return of == 0; });
  }

  bool crosses_no_dimension(std::int64_t row, std::int64_t rows) const {
    return row / view.sizes.back() == (row + rows - 1) / view.sizes.back();
  }

  std::int64_t offset(const InputRows& of, std::int64_t row) const {
    std::int64_t at = 0;
    for (std::size_t d = view.sizes.size(); d-- > 0;) {
      at += row % view.sizes[d] * of.strides[d];
      row /= view.sizes[d];
    }
    return at;
  }
};

}  // namespace

Lowering lower_elementwise(const LowerContext& context) {
  const auto& def = context.op.as<Elementwise>();
  std::vector<TensorType> inputs;
  for (std::size_t i = 0; i < context.op.inputs.size(); ++i) inputs.push_back(context.input(i));
  const auto kernel = std::make_shared<const ElementwiseKernel>(
      ElementwiseKernel{compile_program(def.program), row_view(inputs, context.output(0).shape), def.dtypes});
  const std::int64_t of_thread = kernel->program.registers * block;
  return own_kernel(
      context,
      [kernel, of_thread](const Buffers& buffers) {
        const RowView& view = kernel->view;
        const std::int64_t blocks = divide_up(view.rows, kernel->rows_of_block()) * divide_up(view.length, block);
        auto* registers = buffers.workspace<float>();
        parallel_ranges(blocks, element_grain / block, [&](std::int64_t begin, std::int64_t end) {
          kernel->run(buffers, begin, end, registers + omp_get_thread_num() * of_thread);
        });
      },
      context.threads * of_thread * static_cast<std::int64_t>(sizeof(float)));
}

}  // namespace trainctl::cpu
