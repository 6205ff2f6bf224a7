// Compiles elementwise programs: joins steps to instructions, and gives their values registers.
#include "core/backend/cpu/ops/elementwise/elementwise_code.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

namespace trainctl::cpu {
namespace {

// A step as the continuation of a chain from one of its operands.
struct Link {
  ChainStep step = ChainStep::none;
  int from = -1, other = -1;  // steps of the program; `other` may be -1
};

class ElementwiseCompiler {
 public:
  ElementwiseCompiler(ElementwiseProgram program, const std::vector<ResultUse>& of_results)
      : program_(std::move(program)),
        of_results_(of_results),
        uses_(program_.steps.size(), 0),
        chains_(program_.steps.size()) {
    pass_over_copies();
    for (const int result : program_.results) uses_[at(result)] += of_a_result;
    for (auto number = std::ssize(program_.steps); number-- > 0;) {
      if (is_unused(static_cast<int>(number))) continue;
      const std::array<int, 3>& operands = program_.steps[static_cast<std::size_t>(number)].operands;
      for (auto operand = operands.begin(); operand != operands.end(); ++operand) {
        const bool again = std::find(operands.begin(), operand, *operand) != operand;
        if (*operand >= 0 && !again) ++uses_[at(*operand)];
      }
    }
  }

  ElementwiseCode code() {
    find_gauss();
    for (int i = 0; i < std::ssize(program_.steps); ++i) {
      if (!is_unused(i)) add_step(i);
    }
    for (int i = 0; i < std::ssize(program_.steps); ++i) {
      if (!chains_[at(i)].empty() && !is_unused(i)) place_chain(i);
    }
    std::stable_sort(instructions_.begin(), instructions_.end(),
                     [](const Placed& a, const Placed& b) { return a.step < b.step; });
    return numbered();
  }

 private:
  // An instruction whose values are steps, at the place of a step.
  struct Placed {
    int step = -1;
    ElementwiseInstruction instruction;
  };

  static std::size_t at(int step) { return static_cast<std::size_t>(step); }
  const ScalarStep& step(int number) const { return program_.steps[at(number)]; }
  bool is(int number, ScalarFunction function) const { return number >= 0 && step(number).function == function; }

  bool is_unused(int number) const { return uses_[at(number)] == 0; }

  // Replaces the values stop_gradient(x) and where(c, x, x) by x.
  void pass_over_copies() {
    std::vector<int> same;
    for (int i = 0; i < std::ssize(program_.steps); ++i) {
      ScalarStep& of = program_.steps[at(i)];
      for (int& operand : of.operands) operand = operand < 0 ? -1 : same[at(operand)];
      const bool is_choice = of.function == ScalarFunction::where && of.operands[1] == of.operands[2];
      same.push_back(of.function == ScalarFunction::stop_gradient ? of.operands[0] : is_choice ? of.operands[1] : i);
    }
    for (int& result : program_.results) result = same[at(result)];
  }

  // Finds e^(-x^2) for each erf(x): the steps multiply(x, x), negative and exp.
  void find_gauss() {
    gauss_of_.assign(program_.steps.size(), -1);
    is_done_.assign(program_.steps.size(), false);
    for (int i = 0; i < std::ssize(program_.steps); ++i) {
      if (is_unused(i) || !is(i, ScalarFunction::exp) || !is(step(i).operands[0], ScalarFunction::negative)) continue;
      const int negative = step(i).operands[0], square = step(negative).operands[0];
      if (!is(square, ScalarFunction::multiply) || step(square).operands[0] != step(square).operands[1]) continue;
      for (int k = 0; k < std::ssize(program_.steps); ++k) {
        if (is_unused(k) || !is(k, ScalarFunction::erf) || step(k).operands[0] != step(square).operands[0]) continue;
        gauss_of_[at(k)] = i;
        is_done_[at(i)] = true;
        is_done_[at(negative)] = uses_[at(negative)] == 1;
        is_done_[at(square)] = is_done_[at(negative)] && uses_[at(square)] == 1;
        --uses_[at(negative)];
      }
    }
  }

  void add_step(int i) {
    const ScalarStep& of = step(i);
    const int count = operands_of(of.function);
    if (count == 0 || is_done_[at(i)]) return;
    if (const auto link = link_of(i)) {
      std::vector<Link>& chain = chains_[at(i)];
      if (place_after(link->from, link->step) > 0) {
        chain = chains_[at(link->from)];
        --uses_[at(link->from)];
      }
      chain.push_back(*link);
      return;
    }
    Placed placed{i, {.function = block_function(of.function), .to = i}};
    for (std::size_t k = 0; k < static_cast<std::size_t>(count); ++k) placed.instruction.add_operand(of.operands[k]);
    placed.instruction.chooses = of.function == ScalarFunction::where;
    if (gauss_of_[at(i)] >= 0) {
      placed.instruction.function = nullptr;
      placed.instruction.second = gauss_of_[at(i)];
      placed.step = std::min(i, gauss_of_[at(i)]);
    }
    instructions_.push_back(std::move(placed));
  }

  // The place of a step in a chain that goes on from the value of another step: nothing else needs that value, or it is
  // computed again, because a single step does not take longer than a value is read. 0: the chain does not go on.
  std::size_t place_after(int from, ChainStep step) const {
    if (from < 0) return 0;
    const std::size_t length = chains_[at(from)].size();
    const bool goes_on = length < most_chain_steps && may_be_at(step, length) && (uses_[at(from)] == 1 || length == 1);
    return goes_on && !is_result(from) ? length : 0;
  }

  bool is_result(int number) const {
    return std::find(program_.results.begin(), program_.results.end(), number) != program_.results.end();
  }

  // The step as a continuation from one of its operands, if it can be part of a chain: from that with the longer chain.
  std::optional<Link> link_of(int number) const {
    const auto& [a, b, c] = step(number).operands;
    const auto longer = [this](const Link& one, const Link& other) {
      return place_after(other.from, other.step) > place_after(one.from, one.step) ? other : one;
    };
    switch (step(number).function) {
      case ScalarFunction::add:
        return a == b ? std::nullopt : std::optional(longer({ChainStep::add, a, b}, {ChainStep::add, b, a}));
      case ScalarFunction::subtract:
        if (a == b) return std::nullopt;
        return longer({ChainStep::subtract, a, b}, {ChainStep::subtract_from, b, a});
      case ScalarFunction::multiply:
        if (a == b) return Link{ChainStep::square, a};
        return longer({ChainStep::multiply, a, b}, {ChainStep::multiply, b, a});
      default:
        return std::nullopt;
    }
  }

  void place_chain(int last) {
    const std::vector<Link>& chain = chains_[at(last)];
    ChainSteps steps{ChainStep::none, ChainStep::none, ChainStep::none, ChainStep::none};
    Placed placed{last, {.to = last}};
    placed.instruction.add_operand(chain[0].from);
    for (std::size_t k = 0; k < chain.size(); ++k) {
      steps[k] = chain[k].step;
      placed.instruction.add_operand(chain[k].other >= 0 ? chain[k].other : chain[0].from);
    }
    placed.instruction.function = chain_function(steps);
    add_sum(steps, chain.size(), last, placed.instruction);
    instructions_.push_back(std::move(placed));
  }

  // Lets a chain add its values to a sum, if they are a result with a sum.
  void add_sum(ChainSteps steps, std::size_t length, int value, ElementwiseInstruction& of) const {
    const auto found = std::find(program_.results.begin(), program_.results.end(), value);
    const bool once = std::count(program_.results.begin(), program_.results.end(), value) == 1;
    if (!once) return;
    const ResultUse& use = of_results_[static_cast<std::size_t>(found - program_.results.begin())];
    const bool is_needed = use.is_needed || uses_[at(value)] > of_a_result;
    if (use.row_sum >= 0) {
      of.row_sum = use.row_sum;
      of.with_row_sum = chain_sum_function(steps);
      of.keeps_values = is_needed || use.column_sum >= 0;
    } else if (use.column_sum >= 0 && !is_needed && length < most_chain_steps) {
      steps[length] = ChainStep::add;
      of.column_sum = use.column_sum;
      of.with_column_sum = chain_function(steps);
      of.keeps_values = false;
    }
  }

  std::span<const int> operands_of_instruction(std::size_t k) const {
    const ElementwiseInstruction& of = instructions_[k].instruction;
    return std::span(of.operands).first(static_cast<std::size_t>(of.operand_count));
  }

  // For each instruction, the steps whose values no later instruction needs. The result of a choice may be one of its
  // operands (ElementwiseInstruction::chooses), which is needed as long as the result.
  std::vector<std::vector<int>> last_needed() const {
    std::vector<std::size_t> last(program_.steps.size(), 0);
    for (std::size_t k = 0; k < instructions_.size(); ++k) {
      for (const int operand : operands_of_instruction(k)) last[at(operand)] = k;
    }
    for (const int result : program_.results) last[at(result)] = instructions_.size();
    for (std::size_t k = instructions_.size(); k-- > 0;) {
      const ElementwiseInstruction& of = instructions_[k].instruction;
      if (!of.chooses) continue;
      for (const int operand : operands_of_instruction(k)) {
        last[at(operand)] = std::max(last[at(operand)], last[at(of.to)]);
      }
    }
    std::vector<std::vector<int>> needed(instructions_.size() + 1);
    for (std::size_t i = 0; i < last.size(); ++i) needed[last[i]].push_back(static_cast<int>(i));
    return needed;
  }

  // The code with the numbers of values in place of steps. A register is used again after the last instruction that
  // reads it, except those of results and choices.
  ElementwiseCode numbered() {
    ElementwiseCode code{.inputs = program_.inputs};
    const std::vector<std::vector<int>> needed = last_needed();
    std::vector<int> held(program_.steps.size(), -1), free;
    for (std::size_t k = 0; k < instructions_.size(); ++k) {
      ElementwiseInstruction& of = instructions_[k].instruction;
      for (const int step : needed[k]) {
        if (held[at(step)] >= 0 && !is(step, ScalarFunction::where)) free.push_back(held[at(step)]);
      }
      for (const int to : {of.to, of.second}) {
        if (to < 0) continue;
        if (is_result(to) || of.chooses || free.empty()) {
          held[at(to)] = code.registers++;
          of.writes_result = of.writes_result || is_result(to);
        } else {
          held[at(to)] = free.back();
          free.pop_back();
        }
      }
    }
    number_inputs_and_constants(code, held);
    const auto renumber = [&](int& number) { number = number < 0 ? -1 : held[at(number)]; };
    for (Placed& placed : instructions_) {
      for (int& operand : placed.instruction.operands) renumber(operand);
      renumber(placed.instruction.to);
      renumber(placed.instruction.second);
      code.instructions.push_back(std::move(placed.instruction));
    }
    return code;
  }

  void number_inputs_and_constants(ElementwiseCode& code, std::vector<int>& held) {
    for (const bool inputs : {false, true}) {
      for (std::size_t i = 0; i < program_.steps.size(); ++i) {
        const ScalarStep& of = program_.steps[i];
        if (inputs && of.function == ScalarFunction::input) held[i] = code.first_input() + of.index;
        if (!inputs && of.function == ScalarFunction::constant) {
          held[i] = code.first_input();
          code.constants.push_back(static_cast<float>(of.value));
        }
      }
    }
    bool reads_inputs = false;
    for (const int result : program_.results) {
      code.results.push_back(held[at(result)]);
      reads_inputs = reads_inputs || is(result, ScalarFunction::input);
    }
    if (instructions_.empty() || reads_inputs || instructions_.back().instruction.function == nullptr) return;
    const int last = instructions_.back().instruction.to;
    const auto found = std::find(program_.results.begin(), program_.results.end(), last);
    const bool once = std::count(program_.results.begin(), program_.results.end(), last) == 1;
    if (once) code.last_result = static_cast<int>(found - program_.results.begin());
  }

  static constexpr int of_a_result = 2;  // uses of a value for each result that it is

  ElementwiseProgram program_;
  const std::vector<ResultUse>& of_results_;
  std::vector<int> uses_;                  // of each step: by steps outside of chains that begin with it, and results
  std::vector<std::vector<Link>> chains_;  // of each step: the chain that ends with it
  std::vector<bool> is_done_;
  std::vector<int> gauss_of_;  // of each step erf(x): the step e^(-x^2)
  std::vector<Placed> instructions_;
};

}  // namespace

ElementwiseCode compile_elementwise(const ElementwiseProgram& program, const std::vector<ResultUse>& uses) {
  return ElementwiseCompiler(program, uses).code();
}

}  // namespace trainctl::cpu
