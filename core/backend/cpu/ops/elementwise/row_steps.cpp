// Arranges the ops of a row group in steps.
#include "core/backend/cpu/ops/elementwise/row_steps.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/graph/ops/elementwise/elementwise.h"

namespace trainctl::cpu {
namespace {

constexpr std::size_t most_functions = 300;  // of a step

class RowStepPlanner {
 public:
  RowStepPlanner(const RowGroup& def, const std::vector<TensorType>& types)
      : def_(def), types_(types), made_(types.size(), -1), value_(types.size(), -1) {}

  std::vector<RowStep> steps() {
    for (const SubOp& of : def_.ops) {
      if (const auto* elementwise = dynamic_cast<const Elementwise*>(of.def.get())) {
        add_functions(of, *elementwise);
      } else {
        add_reduction(of, static_cast<const Reduce&>(*of.def));
      }
    }
    mark_written();
    return std::move(steps_);
  }

 private:
  static std::size_t at(int number) { return static_cast<std::size_t>(number); }
  const TensorType& type(int tensor) const { return types_[at(tensor)]; }

  // The first step that may read a tensor for values of this shape. Values of the same shape are read in the step that
  // computes them, unless another dtype rounds them.
  int earliest(int tensor, const Shape& shape) const {
    const int made = made_[at(tensor)];
    if (made < 0) return 0;
    return value_[at(tensor)] >= 0 && steps_[at(made)].shape == shape ? made : made + 1;
  }

  // The first step from `from` on that has values of this shape, and to which a number of functions can be added.
  int step_of(const Shape& shape, int from, std::size_t functions) {
    for (int k = from; k < std::ssize(steps_); ++k) {
      const RowStep& step = steps_[at(k)];
      const bool fits =
          step.program.steps.size() + functions <= most_functions && step.sums.size() < RowStep::most_sums;
      if (step.reduce == nullptr && step.shape == shape && fits) return k;
    }
    steps_.push_back({.shape = shape});
    numbers_.emplace_back();
    return static_cast<int>(steps_.size()) - 1;
  }

  int number_of(int step, const ScalarStep& function) {
    const auto [found, is_new] = numbers_[at(step)].try_emplace(function, -1);
    std::vector<ScalarStep>& functions = steps_[at(step)].program.steps;
    if (is_new) {
      found->second = static_cast<int>(functions.size());
      functions.push_back(function);
    }
    return found->second;
  }

  // The number of a tensor's value in the program of a step.
  int read(int step, int tensor) {
    if (made_[at(tensor)] == step && value_[at(tensor)] >= 0) return value_[at(tensor)];
    RowStep& of = steps_[at(step)];
    const auto found = std::find(of.inputs.begin(), of.inputs.end(), tensor);
    const auto index = static_cast<int>(found - of.inputs.begin());
    if (found == of.inputs.end()) of.inputs.push_back(tensor);
    of.program.inputs = static_cast<int>(of.inputs.size());
    return number_of(step, {.function = ScalarFunction::input, .index = index});
  }

  // The number of the result that is a tensor.
  std::size_t result_of(int step, int tensor, int value) {
    RowStep& of = steps_[at(step)];
    const auto found = std::find(of.results.begin(), of.results.end(), tensor);
    const auto number = static_cast<std::size_t>(found - of.results.begin());
    if (found == of.results.end()) {
      of.results.push_back(tensor);
      of.program.results.push_back(value);
      of.dtypes.push_back(type(tensor).dtype);
    }
    return number;
  }

  void add_functions(const SubOp& op, const Elementwise& def) {
    const Shape& shape = type(op.outputs[0]).shape;
    int from = 0;
    for (const int tensor : op.inputs) from = std::max(from, earliest(tensor, shape));
    const int step = step_of(shape, from, def.program.steps.size());
    std::vector<int> numbers;
    for (ScalarStep function : def.program.steps) {
      if (function.function == ScalarFunction::input) {
        numbers.push_back(read(step, op.inputs[at(function.index)]));
        continue;
      }
      for (int& operand : function.operands) operand = operand < 0 ? -1 : numbers[at(operand)];
      numbers.push_back(number_of(step, function));
    }
    for (std::size_t r = 0; r < op.outputs.size(); ++r) {
      const int tensor = op.outputs[r], number = numbers[at(def.program.results[r])];
      result_of(step, tensor, number);
      made_[at(tensor)] = step;
      value_[at(tensor)] = def.dtypes[r] == DType::float32 ? number : -1;
    }
  }

  void add_reduction(const SubOp& op, const Reduce& def) {
    const int x = op.inputs[0], y = op.outputs[0];
    const Shape& shape = type(x).shape;
    int step = static_cast<int>(steps_.size());
    if (def.reduction == ReduceKind::sum && type(x).dtype == DType::float32) {
      step = step_of(shape, earliest(x, shape), 1);
      const bool of_rows = !is_sum_of_rows(def, type(x), def_.row_dimensions);
      std::int64_t count = 1;
      for (std::int64_t d = of_rows ? def.begin : def.end; d < shape.rank(); ++d) count *= shape[d];
      const std::size_t result = result_of(step, x, read(step, x));
      steps_[at(step)].sums.push_back({result, &def, y, count, of_rows});
    } else {
      steps_.push_back({.shape = shape,
                        .inputs = {x},
                        .results = {y},
                        .dtypes = {type(x).dtype},
                        .is_written = {true},
                        .reduce = &def});
      numbers_.emplace_back();
    }
    made_[at(y)] = step;
  }

  void mark_written() {
    std::vector<bool> is_read(types_.size(), false);
    for (int i = 0; i < def_.outputs_count; ++i) is_read[at(def_.inputs_count + i)] = true;
    for (const RowStep& step : steps_) {
      for (const int tensor : step.inputs) is_read[at(tensor)] = true;
    }
    for (int k = 0; k < std::ssize(steps_); ++k) {
      RowStep& step = steps_[at(k)];
      if (step.reduce != nullptr) continue;
      for (const int tensor : step.results) {
        step.is_written.push_back(made_[at(tensor)] == k && is_read[at(tensor)]);
      }
    }
  }

  const RowGroup& def_;
  const std::vector<TensorType>& types_;
  std::vector<RowStep> steps_;
  std::vector<std::map<ScalarStep, int>> numbers_;  // of each step: the number of each function in its program
  std::vector<int> made_;   // of each tensor: the step that computes it, -1 for inputs of the group
  std::vector<int> value_;  // of each tensor: its number in the program of this step, -1 if other steps may not use it
};

}  // namespace

std::vector<RowStep> row_steps(const RowGroup& def, const std::vector<TensorType>& types) {
  return RowStepPlanner(def, types).steps();
}

}  // namespace trainctl::cpu
