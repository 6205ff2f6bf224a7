// Expands an expression: names, subscripts, and the elementwise programs between other ops.
#include "core/layers/expression/builder.h"

#include <algorithm>
#include <utility>

#include "core/base/format.h"
#include "core/base/random.h"
#include "core/base/table.h"
#include "core/graph/ops/dense.h"
#include "core/graph/ops/elementwise/elementwise.h"
#include "core/graph/ops/embedding.h"
#include "core/graph/ops/images/padding.h"
#include "core/graph/ops/reshaping/shaping.h"
#include "core/layers/expression/functions.h"
#include "core/spec/suggestion.h"

namespace trainctl {
namespace {

bool is_float(DType dtype) { return dtype == DType::float32 || dtype == DType::bfloat16 || dtype == DType::float16; }

// Adds the dimensions of `x` to the broadcast shape `to`.
void broadcast(const ExpressionOperand& x, ExpressionOperand& to, int column) {
  const auto fail = [&](const std::string& why) {
    throw ExpressionError(column, format("shapes {} and {} do not fit: {}", shape_text(to), shape_text(x), why));
  };
  if (x.has_samples && to.has_samples && x.rank() != to.rank()) {
    fail(
        "both have the samples in dimension 0, but different numbers of dimensions; add dimensions of size 1 with "
        "[:, None]");
  }
  const ExpressionOperand &longer = x.rank() > to.rank() ? x : to, &shorter = x.rank() > to.rank() ? to : x;
  ExpressionOperand joined = longer;
  joined.has_samples = x.has_samples || to.has_samples;
  const std::int64_t ahead = longer.rank() - shorter.rank();
  if (shorter.has_samples && ahead > 0) fail("the samples, dimension 0, would not be the first dimension");
  for (std::int64_t d = 0; d < shorter.rank(); ++d) {
    const std::int64_t a = longer.shape[ahead + d], b = shorter.shape[d];
    const bool samples = ahead + d == 0 && longer.has_samples != shorter.has_samples;
    if (samples && (longer.has_samples ? b : a) != 1) fail("the first dimension of one of them is that of the samples");
    if (a != b && a != 1 && b != 1) fail("dimensions must be equal, or 1");
    joined.shape[ahead + d] = a == 1 ? b : a;
  }
  to.shape = joined.shape;
  to.has_samples = joined.has_samples;
}

// One item of a list, or a list of consecutive ones.
ExpressionOperand item_of(const ExpressionOperand& list, const Expression& expression) {
  const Subscript& of = expression.subscripts[0];
  const std::int64_t count = std::ssize(list.items);
  const auto from_front = [&](std::int64_t number) { return number < 0 ? number + count : number; };
  if (expression.subscripts.size() > 1 || of.step.value_or(1) != 1 ||
      (of.kind != Subscript::Kind::element && of.kind != Subscript::Kind::slice)) {
    throw ExpressionError(of.column, "the subscript of a list is a number, or a slice such as 1:3");
  }
  if (of.kind == Subscript::Kind::element) {
    const std::int64_t at = from_front(*of.begin);
    if (at < 0 || at >= count) throw ExpressionError(of.column, format("the list has {}", counted(count, "item")));
    return list.items[static_cast<std::size_t>(at)];
  }
  ExpressionOperand part = list;
  const std::int64_t begin = std::clamp<std::int64_t>(from_front(of.begin.value_or(0)), 0, count),
                     end = std::clamp<std::int64_t>(from_front(of.end.value_or(count)), begin, count);
  part.items.assign(list.items.begin() + begin, list.items.begin() + end);
  return part;
}

}  // namespace

std::string shape_text(const ExpressionOperand& operand) {
  std::string text;
  for (std::int64_t d = 0; d < operand.rank(); ++d) {
    text +=
        format("{}{}", d > 0 ? ", " : "", d == 0 && operand.has_samples ? "batch" : std::to_string(operand.shape[d]));
  }
  return "(" + text + ")";
}

ExpressionOperand ExpressionBuilder::number(double value, int column) {
  ExpressionOperand made{.kind = ExpressionOperand::Kind::number, .column = column, .number = value};
  made.step = graph_.of_constant(value);
  return made;
}

ExpressionOperand ExpressionBuilder::evaluate(const Expression& expression) {
  ExpressionOperand made{.column = expression.column};
  switch (expression.kind) {
    case Expression::Kind::number:
      return number(expression.number, expression.column);
    case Expression::Kind::boolean:
      made = number(expression.number, expression.column);
      made.kind = ExpressionOperand::Kind::boolean;
      return made;
    case Expression::Kind::none:
      return made;
    case Expression::Kind::text:
      made.kind = ExpressionOperand::Kind::text;
      made.text = expression.text;
      return made;
    case Expression::Kind::list:
      made.kind = ExpressionOperand::Kind::list;
      for (const Expression& item : expression.operands) made.items.push_back(evaluate(item));
      return made;
    case Expression::Kind::name:
      return name(expression);
    case Expression::Kind::subscript:
      return subscript(expression);
    case Expression::Kind::call:
      made = call_function(*this, expression);
      made.column = expression.column;
      return made;
  }
  return made;
}

ExpressionOperand ExpressionBuilder::evaluate(const Expression& expression,
                                              const std::map<std::string, ExpressionOperand>& locals) {
  const auto* const outer = std::exchange(locals_, &locals);
  ExpressionOperand made = evaluate(expression);
  locals_ = outer;
  return made;
}

int ExpressionBuilder::input_of(TensorId tensor) {
  const auto index = std::find(tensors_.begin(), tensors_.end(), tensor) - tensors_.begin();
  if (index == std::ssize(tensors_)) tensors_.push_back(tensor);
  return graph_.of_input(static_cast<int>(index));
}

// Programs read tensors without samples without their leading dimensions of size 1, which could be taken for that of
// one sample.
ExpressionOperand ExpressionBuilder::of_tensor(TensorId tensor, bool has_samples, int column) {
  const Shape shape = scope_.type_of(tensor).shape;
  Shape read = shape;
  while (!has_samples && read.rank() > 1 && read[0] == 1) read = read.without_front();
  if (read != shape) {
    const auto [narrow, is_new] = narrow_.try_emplace(tensor, no_tensor);
    if (is_new) narrow->second = scope_.append(std::make_shared<Reshape>(read), {tensor});
    tensor = narrow->second;
  }
  return {.kind = ExpressionOperand::Kind::tensor,
          .column = column,
          .step = input_of(tensor),
          .shape = shape,
          .has_samples = has_samples};
}

ExpressionOperand ExpressionBuilder::computable(const ExpressionOperand& of) {
  if (of.weight == no_tensor) return of;
  const auto [copy, is_new] = copies_.try_emplace(of.weight, no_tensor);
  if (is_new) {
    ScalarGraph identity;
    const int results[] = {identity.of_input(0)};
    copy->second = scope_.append(std::make_shared<Elementwise>(identity.program(results), std::vector{DType::float32}),
                                 {of.weight});
  }
  return of_tensor(copy->second, false, of.column);
}

ExpressionOperand ExpressionBuilder::product(const ExpressionOperand& x, const ExpressionOperand& weight,
                                             bool transposed, int column) {
  require(weight.weight != no_tensor, "expression: the second factor is not a weight");
  std::shared_ptr<const OpDef> def;
  transposed ? def = std::make_shared<DenseGradInput>() : def = std::make_shared<Dense>();
  return of_tensor(scope_.append(std::move(def), {tensor(x), weight.weight}), true, column);
}

ExpressionOperand ExpressionBuilder::name(const Expression& expression) {
  const std::string& name = expression.text;
  if (locals_ != nullptr) return locals_->at(name);
  if (const auto found = defined_.find(name); found != defined_.end()) {
    ExpressionOperand value = found->second;
    value.column = expression.column;
    return value;
  }
  if (const auto found = scope_.tensors.find(name); found != scope_.tensors.end()) {
    const ExpressionTensor& of = found->second;
    if (of.has_samples) return of_tensor(of.tensor, true, expression.column);
    ExpressionOperand weight{.kind = ExpressionOperand::Kind::tensor, .column = expression.column};
    weight.weight = of.tensor;
    weight.shape = scope_.type_of(of.tensor).shape;
    return weight;
  }
  if (name == "pi" || name.ends_with(".pi")) return number(3.14159265358979323846, expression.column);
  if (name == "e") return number(2.71828182845904523536, expression.column);
  std::vector<std::string> known;
  for (const auto& [of, value] : scope_.tensors) known.push_back(of);
  for (const auto& [of, value] : defined_) known.push_back(of);
  std::string all;
  for (const std::string& of : known) all += (all.empty() ? "" : ", ") + of;
  throw ExpressionError(expression.column,
                        format("'{}' is unknown{}; the names are: {}", name, suggestion(name, known), all));
}

ExpressionOperand ExpressionBuilder::apply(ScalarFunction function, const std::vector<ExpressionOperand>& operands,
                                           int column) {
  ExpressionOperand made{.column = column};
  int steps[3] = {-1, -1, -1};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const ExpressionOperand operand = computable(operands[i]);
    if (operand.step < 0) {
      throw ExpressionError(operand.column, format("{}() takes tensors and numbers", name_of(function)));
    }
    steps[i] = operand.step;
    if (!operand.is_tensor()) continue;
    if (made.is_tensor()) {
      broadcast(operand, made, column);
    } else {
      made.kind = ExpressionOperand::Kind::tensor;
      made.shape = operand.shape;
      made.has_samples = operand.has_samples;
    }
  }
  made.step = graph_.apply(function, steps[0], steps[1], steps[2]);
  const ScalarStep& of = graph_.step(made.step);
  if (of.function == ScalarFunction::constant) return number(of.value, column);
  if (!made.is_tensor()) throw ExpressionError(column, "the value is not a number");
  return made;
}

TensorId ExpressionBuilder::tensor(const ExpressionOperand& of) {
  return tensor_in(of, of.has_samples ? scope_.dtype : DType::float32);
}

TensorId ExpressionBuilder::tensor_in(const ExpressionOperand& of_operand, DType dtype) {
  const ExpressionOperand operand = computable(of_operand);
  if (!operand.is_tensor()) throw ExpressionError(operand.column, "a tensor is needed here");
  ScalarStep step = graph_.step(operand.step);
  if (step.function == ScalarFunction::input) {
    const TensorId of = tensors_[static_cast<std::size_t>(step.index)];
    const TensorType type = scope_.type_of(of);
    const bool fits = operand.has_samples ? type.dtype == dtype : is_float(type.dtype);
    if (type.shape == operand.shape && fits) return of;
  }
  if (const auto found = materialized_.find({operand.step, dtype});
      found != materialized_.end() && scope_.type_of(found->second).shape == operand.shape) {
    return found->second;
  }
  const int results[] = {operand.step};
  ElementwiseProgram program = graph_.program(results);
  std::vector<TensorId> inputs;
  std::vector<TensorType> types;
  for (const int input : compact_inputs(program)) {
    inputs.push_back(tensors_[static_cast<std::size_t>(input)]);
    types.push_back(scope_.type_of(inputs.back()));
  }
  constexpr std::size_t most_inputs = 32, most_steps = 400;
  if (inputs.size() > most_inputs || program.steps.size() > most_steps) {
    throw ExpressionError(
        operand.column, format("a chain of elementwise functions has more than {} tensors or {} functions and numbers; "
                               "use several layers",
                               most_inputs, most_steps));
  }
  auto def = std::make_shared<Elementwise>(std::move(program), std::vector{dtype});
  const Shape found = def->outputs(types)[0].shape;
  for (std::int64_t i = 0; i < operand.rank(); ++i) {
    const std::int64_t wanted = operand.shape[operand.rank() - 1 - i];
    if (i >= found.rank() || found[found.rank() - 1 - i] != wanted)
      def->expanded.push_back({static_cast<int>(i), wanted});
  }
  return materialized_[{operand.step, dtype}] = scope_.append(std::move(def), std::move(inputs));
}

ExpressionOperand ExpressionBuilder::op(std::shared_ptr<const OpDef> def, const std::vector<ExpressionOperand>& inputs,
                                        int column) {
  std::vector<TensorId> tensors;
  bool has_samples = false;
  const bool exact = inputs.size() == 1 && inputs[0].exact;
  for (const ExpressionOperand& input : inputs) {
    tensors.push_back(exact ? tensor_in(input, DType::float32) : tensor(input));
    has_samples = has_samples || input.has_samples;
  }
  std::string what = format("{} {}", def->kind(), def->attributes());
  const auto [known, is_new] = computed_.try_emplace({std::move(what), tensors}, no_tensor);
  if (is_new) known->second = scope_.append(std::move(def), std::move(tensors));
  ExpressionOperand made = of_tensor(known->second, has_samples, column);
  made.exact = exact;
  return made;
}

ExpressionOperand ExpressionBuilder::exact(const ExpressionOperand& of) {
  ExpressionOperand made = of;
  made.exact = true;
  return made;
}

std::optional<ExpressionOperand> ExpressionBuilder::rows(const ExpressionOperand& weight,
                                                         const ExpressionOperand& numbers, int column) {
  if (weight.weight == no_tensor || weight.rank() != 2 || numbers.step < 0) return {};
  const ScalarStep& step = graph_.step(numbers.step);
  if (step.function != ScalarFunction::input) return {};
  const TensorId of = tensors_[static_cast<std::size_t>(step.index)];
  if (scope_.type_of(of).dtype != DType::int32 || scope_.type_of(of).shape != numbers.shape) return {};
  const TensorId found = scope_.append(std::make_shared<Embedding>(scope_.dtype), {of, weight.weight});
  return of_tensor(found, true, column);
}

ExpressionOperand ExpressionBuilder::random(RandomNumbers::Kind distribution, const ExpressionOperand& x, Shape sample,
                                            int column) {
  if (scope_.samples_and_step == nullptr) throw ExpressionError(column, "a loss has no random numbers");
  std::vector<TensorId> inputs = scope_.samples_and_step();
  if (x.shape[0] != scope_.type_of(inputs[0]).shape[0]) {
    throw ExpressionError(column, "there are no random numbers inside time_distributed; draw them before or after it");
  }
  const std::uint32_t place = name_hash(format("{}/random_{}", scope_.path, ++drawn_));
  // Uniform numbers below 1 would be rounded to 1 in bfloat16.
  const DType dtype = distribution == RandomNumbers::Kind::uniform ? DType::float32 : scope_.dtype;
  auto def = std::make_shared<RandomNumbers>(distribution, std::move(sample), dtype, scope_.seed, place);
  inputs.insert(inputs.begin(), tensor(x));
  return of_tensor(scope_.append(std::move(def), std::move(inputs)), true, column);
}

ExpressionOperand ExpressionBuilder::stored(const ExpressionOperand& of) {
  return of_tensor(tensor(of), of.has_samples, of.column);
}

ExpressionOperand ExpressionBuilder::reshaped(const ExpressionOperand& of, Shape shape) {
  if (of.shape == shape) return of;
  return op(std::make_shared<Reshape>(std::move(shape)), {of}, of.column);
}

ExpressionOperand ExpressionBuilder::reduced(const ExpressionOperand& x, ReduceKind kind, const std::vector<int>& axes,
                                             bool keep, double scale, int column) {
  ExpressionOperand result = x;
  for (std::size_t last = axes.size(); last > 0;) {
    std::size_t first = last - 1;
    while (first > 0 && axes[first - 1] + 1 == axes[first]) --first;
    auto def = std::make_shared<Reduce>(kind, axes[first], axes[last - 1] + 1);
    def->keep = keep;
    def->dtype = x.has_samples && !x.exact ? scope_.dtype : DType::float32;
    if (last == axes.size() && kind == ReduceKind::sum) def->scale = static_cast<float>(scale);
    result = op(std::move(def), {result}, column);
    last = first;
  }
  return result;
}

ExpressionOperand ExpressionBuilder::subscript(const Expression& expression) {
  ExpressionOperand x = evaluate(expression.operands[0]);
  if (x.kind == ExpressionOperand::Kind::list) return item_of(x, expression);
  if (!x.is_tensor()) throw ExpressionError(expression.column, "only a tensor or a list has subscripts");
  std::int64_t taken = 0;
  for (const Subscript& of : expression.subscripts) {
    taken += of.kind == Subscript::Kind::element || of.kind == Subscript::Kind::slice ? 1 : 0;
  }
  if (taken > x.rank()) {
    throw ExpressionError(expression.column,
                          format("{} has fewer than {}", shape_text(x), counted(taken, "dimension")));
  }
  std::vector<std::int64_t> sizes;
  std::int64_t axis = 0;
  bool has_ellipsis = false;
  for (const Subscript& of : expression.subscripts) {
    if (of.kind == Subscript::Kind::new_axis) {
      if (axis == 0 && x.has_samples) throw ExpressionError(of.column, "dimension 0 must stay that of the samples");
      sizes.push_back(1);
    } else if (of.kind == Subscript::Kind::ellipsis) {
      if (std::exchange(has_ellipsis, true)) throw ExpressionError(of.column, "there may be only one ...");
      for (std::int64_t skipped = x.rank() - taken; skipped > 0; --skipped) sizes.push_back(x.shape[axis++]);
    } else {
      x = sliced(*this, x, static_cast<int>(axis), of);
      if (of.kind == Subscript::Kind::slice) sizes.push_back(x.shape[axis]);
      ++axis;
    }
  }
  while (axis < x.rank()) sizes.push_back(x.shape[axis++]);
  return reshaped(x, Shape(std::move(sizes)));
}

}  // namespace trainctl
