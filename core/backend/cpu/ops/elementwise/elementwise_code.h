// Elementwise programs as instructions on blocks of values: chains of cheap functions are one instruction.
#pragma once

#include <vector>

#include "core/backend/cpu/simd/scalar_functions.h"
#include "core/expression/elementwise_program.h"

namespace trainctl::cpu {

// Computes a block of values. Operands and results are numbers of values; -1: none.
struct ElementwiseInstruction {
  BlockFunction function = nullptr;  // null: `to` is erf() of the operand, and `second` is e^(-x^2)
  std::vector<int> operands;
  int to = -1, second = -1;
  bool writes_result = false;
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

ElementwiseCode compile_elementwise(const ElementwiseProgram& program);

}  // namespace trainctl::cpu
