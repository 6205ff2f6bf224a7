// Elementwise programs as instructions on blocks of values: chains of cheap functions are one instruction.
#pragma once

#include <array>
#include <vector>

#include "core/backend/cpu/simd/chains.h"
#include "core/backend/cpu/simd/scalar_functions.h"
#include "core/expression/elementwise_program.h"

namespace trainctl::cpu {

// Computes a block of values. Operands and results are numbers of values; -1: none.
struct ElementwiseInstruction {
  BlockFunction function = nullptr;  // null: `to` is erf() of the operand, and `second` is e^(-x^2)
  int operand_count = 0;
  std::array<int, most_operands> operands = {-1, -1, -1, -1, -1};
  int to = -1, second = -1;
  bool writes_result = false;
  // Whether it is where(): if the condition is one value for the whole block, the chosen operand is the result, without
  // a copy. The operand's register is not used again before the last use of the result.
  bool chooses = false;
  // Of a chain whose values are added up: the number of the sum of each row, and the function that adds to it.
  int row_sum = -1;
  ChainSumFunction with_row_sum = nullptr;
  // Of a chain whose values are only added to the sums of columns: the number of the sum, and the function that has the
  // earlier sums as its last operand.
  int column_sum = -1;
  BlockFunction with_column_sum = nullptr;
  bool keeps_values = true;  // whether the values are needed besides their sum

  void add_operand(int number) { operands[static_cast<std::size_t>(operand_count++)] = number; }
};

// What is needed of a result of a program.
struct ResultUse {
  bool is_needed = true;              // the values
  int row_sum = -1, column_sum = -1;  // the number of a sum of them; -1: none
};

// A program's instructions. Its values are numbered: first `registers` blocks that instructions write, then the
// constants, then the inputs. Results have registers of their own, which only their instructions write.
struct ElementwiseCode {
  std::vector<ElementwiseInstruction> instructions;
  std::vector<float> constants;
  int registers = 0, inputs = 0;
  std::vector<int> results;  // numbers of values
  // The result that the last instruction may write directly to its tensor, in place of a register: no other result is
  // the same value, or an input. -1: none.
  int last_result = -1;

  int first_constant() const { return registers; }
  int first_input() const { return registers + static_cast<int>(constants.size()); }
  int values() const { return first_input() + inputs; }
};

// `uses`: of each result. The values do not depend on them.
ElementwiseCode compile_elementwise(const ElementwiseProgram& program, const std::vector<ResultUse>& uses);

}  // namespace trainctl::cpu
