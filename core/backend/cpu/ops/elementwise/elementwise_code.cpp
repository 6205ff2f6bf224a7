// Compiles elementwise programs: joins steps to instructions, and gives their values registers.
#include "core/backend/cpu/ops/elementwise/elementwise_code.h"

#include <algorithm>
#include <array>
#include <optional>
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
  explicit ElementwiseCompiler(ElementwiseProgram program)
      : program_(std::move(program)), uses_(program_.steps.size(), 0), chains_(program_.steps.size()) {
    pass_over_stops();
    for (const ScalarStep& step : program_.steps) {
      if (step.function == ScalarFunction::stop_gradient) continue;
      for (std::size_t k = 0; k < step.operands.size(); ++k) {
        const auto end = step.operands.begin() + static_cast<std::ptrdiff_t>(k);
        const bool again = std::find(step.operands.begin(), end, step.operands[k]) != end;
        if (step.operands[k] >= 0 && !again) ++uses_[at(step.operands[k])];
      }
    }
    for (const int result : program_.results) uses_[at(result)] += 2;  // a result is never inside a chain
  }

  ElementwiseCode code() {
    find_gauss();
    for (int i = 0; i < std::ssize(program_.steps); ++i) {
      if (!is(i, ScalarFunction::stop_gradient)) add_step(i);
    }
    for (int i = 0; i < std::ssize(program_.steps); ++i) {
      if (!chains_[at(i)].empty() && !is_inside_chain_[at(i)]) place_chain(i);
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

  // Replaces each value stop_gradient(x) by x.
  void pass_over_stops() {
    std::vector<int> same;
    for (int i = 0; i < std::ssize(program_.steps); ++i) {
      ScalarStep& of = program_.steps[at(i)];
      for (int& operand : of.operands) operand = operand < 0 ? -1 : same[at(operand)];
      same.push_back(of.function == ScalarFunction::stop_gradient ? of.operands[0] : i);
    }
    for (int& result : program_.results) result = same[at(result)];
  }

  // Finds e^(-x^2) for each erf(x): the steps multiply(x, x), negative and exp.
  void find_gauss() {
    is_inside_chain_.assign(program_.steps.size(), false);
    gauss_of_.assign(program_.steps.size(), -1);
    is_done_.assign(program_.steps.size(), false);
    for (int i = 0; i < std::ssize(program_.steps); ++i) {
      if (!is(i, ScalarFunction::exp) || !is(step(i).operands[0], ScalarFunction::negative)) continue;
      const int negative = step(i).operands[0], square = step(negative).operands[0];
      if (!is(square, ScalarFunction::multiply) || step(square).operands[0] != step(square).operands[1]) continue;
      for (int k = 0; k < std::ssize(program_.steps); ++k) {
        if (!is(k, ScalarFunction::erf) || step(k).operands[0] != step(square).operands[0]) continue;
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
      if (continues(link->from)) {
        chain = chains_[at(link->from)];
        is_inside_chain_[at(link->from)] = true;
      }
      chain.push_back(*link);
      return;
    }
    Placed placed{i, {block_function(of.function), {of.operands.begin(), of.operands.begin() + count}, i}};
    if (gauss_of_[at(i)] >= 0) {
      placed.instruction.function = nullptr;
      placed.instruction.second = gauss_of_[at(i)];
      placed.step = std::min(i, gauss_of_[at(i)]);
    }
    instructions_.push_back(std::move(placed));
  }

  // Whether a chain can go on from the value of a step, which nothing else needs.
  bool continues(int from) const {
    const std::vector<Link>& chain = chains_[at(from)];
    return !chain.empty() && chain.size() < most_chain_steps && uses_[at(from)] == 1;
  }

  std::optional<Link> link_of(int number) const {
    const auto& [a, b, c] = step(number).operands;
    if (a == b) {
      const bool square = step(number).function == ScalarFunction::multiply;
      return square ? std::optional(Link{ChainStep::square, a}) : std::nullopt;
    }
    // The chain goes on from the operand with the longer chain.
    const bool from_b = b >= 0 && continues(b) && (!continues(a) || chains_[at(b)].size() > chains_[at(a)].size());
    const int from = from_b ? b : a, other = from_b ? a : b;
    switch (step(number).function) {
      case ScalarFunction::add:
        return Link{ChainStep::add, from, other};
      case ScalarFunction::subtract:
        return Link{from_b ? ChainStep::subtract_from : ChainStep::subtract, from, other};
      case ScalarFunction::multiply:
        return Link{ChainStep::multiply, from, other};
      default:
        return std::nullopt;
    }
  }

  void place_chain(int last) {
    const std::vector<Link>& chain = chains_[at(last)];
    std::array<ChainStep, most_chain_steps> steps{ChainStep::none, ChainStep::none, ChainStep::none};
    Placed placed{last, {nullptr, {chain[0].from}, last}};
    for (std::size_t k = 0; k < chain.size(); ++k) {
      steps[k] = chain[k].step;
      placed.instruction.operands.push_back(chain[k].other >= 0 ? chain[k].other : chain[0].from);
    }
    placed.instruction.function = chain_function(steps);
    instructions_.push_back(std::move(placed));
  }

  // The code with the numbers of values in place of steps. A register is used again after the last instruction that
  // reads it.
  ElementwiseCode numbered() {
    ElementwiseCode code{.inputs = program_.inputs};
    const auto count = program_.steps.size();
    std::vector<std::size_t> last_use(count, 0);
    for (std::size_t k = 0; k < instructions_.size(); ++k) {
      for (const int operand : instructions_[k].instruction.operands) last_use[at(operand)] = k;
    }
    for (const int result : program_.results) last_use[at(result)] = instructions_.size();
    std::vector<int> held(count, -1), free;
    for (std::size_t k = 0; k < instructions_.size(); ++k) {
      ElementwiseInstruction& of = instructions_[k].instruction;
      std::vector<int> read = of.operands;
      std::sort(read.begin(), read.end());
      read.erase(std::unique(read.begin(), read.end()), read.end());
      for (const int operand : read) {
        if (held[at(operand)] >= 0 && last_use[at(operand)] == k) free.push_back(held[at(operand)]);
      }
      for (const int to : {of.to, of.second}) {
        if (to < 0) continue;
        const bool is_result =
            std::find(program_.results.begin(), program_.results.end(), to) != program_.results.end();
        if (is_result || free.empty()) {
          held[at(to)] = code.registers++;
          of.writes_result = of.writes_result || is_result;
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

  ElementwiseProgram program_;
  std::vector<int> uses_;                  // of each step: by how many steps; by results twice
  std::vector<std::vector<Link>> chains_;  // of each step: the chain that ends with it
  std::vector<bool> is_inside_chain_, is_done_;
  std::vector<int> gauss_of_;  // of each step erf(x): the step e^(-x^2)
  std::vector<Placed> instructions_;
};

}  // namespace

ElementwiseCode compile_elementwise(const ElementwiseProgram& program) { return ElementwiseCompiler(program).code(); }

}  // namespace trainctl::cpu
