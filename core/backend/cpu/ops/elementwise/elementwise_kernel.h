// Runs an elementwise program over blocks of values in the cache of a thread.
#pragma once

#include <cstdint>
#include <vector>

#include "core/backend/cpu/ops/elementwise/elementwise_code.h"
#include "core/backend/cpu/ops/reduce_rows.h"
#include "core/graph/ops/elementwise/elementwise.h"

namespace trainctl::cpu {

// A sum of a result of a program.
struct ResultSum {
  std::size_t result = 0;
  bool of_rows = true;  // of rows; otherwise of columns
};

// Where the values of a sum are added up: one of the two.
struct SumTarget {
  RowSums rows;
  ColumnSums columns;
};

class ElementwiseKernel {
 public:
  static constexpr std::int64_t block = 2048;      // values of a register
  static constexpr std::size_t most_values = 512;  // of a program: registers, constants and inputs

  // `to` is the shape of the outputs. `is_written`: for each result, whether run() with sums writes it.
  ElementwiseKernel(const Elementwise& def, const std::vector<TensorType>& inputs, const Shape& to,
                    std::vector<ResultSum> sums = {}, const std::vector<bool>& is_written = {});

  // The number of blocks into which the outputs are divided. It depends on the shapes only.
  std::int64_t blocks() const;
  // The number of float values that run() needs as scratch memory, aligned to 64 bytes.
  std::int64_t workspace() const;
  // Computes the blocks [begin, end). Inputs and outputs are the addresses of the whole tensors. The first output may
  // be an input.
  void run(const void* const* inputs, void* const* outputs, std::int64_t begin, std::int64_t end,
           float* workspace) const;
  // Computes all blocks, and adds results to the sums' targets. No output may be an input. Outputs that are null are
  // not written.
  void run(const void* const* inputs, void* const* outputs, float* workspace, SumTarget* targets) const;

 private:
  // An input by the rows of the output: element (row, i) is at offset(row) + i * step.
  struct InputRows {
    DType dtype = DType::float32;
    std::int64_t step = 0;              // 0: one value for the whole row
    std::vector<std::int64_t> strides;  // of the dimensions of rows
    bool same_in_rows = false;          // whether all rows are equal, and fit into a register

    std::int64_t offset(const std::vector<std::int64_t>& sizes, std::int64_t row) const;
  };
  // The values of a block: rows [row, row + rows), in each `length` values from `first` on.
  struct Part {
    std::int64_t row = 0, rows = 1, first = 0, length = 0;
  };

  std::int64_t rows_of_block() const;
  Part part(std::int64_t number) const;
  BlockOperand read(const InputRows& input, const void* from, const Part& part, float* to) const;
  // The values [offset, offset + count) of the outputs, which are computed together.
  struct Block {
    std::int64_t offset = 0, count = 0;
    BlockOperand* values = nullptr;
    float* registers = nullptr;
    SumTarget* targets = nullptr;  // null: nothing is added up
    std::uint32_t added = 0;       // bit k: sum number k has the values already
  };
  void run(const void* const* inputs, void* const* outputs, std::int64_t begin, std::int64_t end, float* workspace,
           SumTarget* targets, bool apart) const;
  // Computes the values that instructions write: results at the addresses that `values` has for them, others in
  // registers.
  void compute(Block& block) const;
  void compute(const ElementwiseInstruction& instruction, BlockOperand* operands, std::int64_t count,
               Block& block) const;
  // Computes a chain and adds its values to a sum. Returns false, and does nothing, if they are in several rows.
  bool compute_with_sum(const ElementwiseInstruction& instruction, BlockOperand* operands, Block& block) const;
  // Adds the results to the sums that have no values of the block yet. `repeated` has the size of a block.
  void add_to_sums(const Block& block, float* repeated) const;

  ElementwiseCode code_;
  std::vector<ResultSum> sums_;
  std::vector<DType> dtypes_;  // of the results
  // The results whose instruction may write them to the output, if outputs and inputs share no memory.
  std::vector<bool> is_direct_;
  // The output as rows, whose dimensions are merged where all inputs allow it.
  std::int64_t length_ = 1, rows_ = 1;
  std::vector<std::int64_t> sizes_;  // of the dimensions of rows
  std::vector<InputRows> inputs_;
};

}  // namespace trainctl::cpu
