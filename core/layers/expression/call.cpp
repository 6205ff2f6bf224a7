// Reads the arguments of calls.
#include "core/layers/expression/call.h"

#include <algorithm>

#include "core/base/table.h"
#include "core/spec/suggestion.h"

namespace trainctl::expression {

std::vector<Parameter> parameters_of(std::string_view text) {
  std::vector<Parameter> parameters;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    const std::size_t equals = std::min(word.find('='), word.size());
    parameters.push_back({std::string(word.substr(0, equals)),
                          equals < word.size() ? std::string(word.substr(equals + 1)) : std::string()});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parameters;
}

namespace {

// The message about a keyword that is none of the parameters, which `text` lists.
std::string unknown_argument(const std::string& keyword, const std::string& function,
                             const std::vector<Parameter>& parameters, std::string_view text) {
  std::vector<std::string> names;
  for (const Parameter& of : parameters) names.push_back(of.name);
  const auto has = [&](const char* name) { return std::find(names.begin(), names.end(), name) != names.end(); };
  std::string hint = suggestion(keyword, names);
  if (keyword == "dim" && has("axis")) hint = "; did you mean 'axis'?";
  if (keyword.starts_with("keep") && !has("keepdims")) {
    hint = format("; if its result lacks a dimension, expand_dims({}(...), axis) adds it with size 1", function);
  }
  return format("there is no argument '{}'{}{} the arguments are: {}", keyword, hint, hint.ends_with('?') ? "" : ";",
                text);
}

}  // namespace

FunctionCall::FunctionCall(ExpressionBuilder& to, const Expression& call, const std::string& name,
                           std::string_view text)
    : builder(to), column(call.column), function(name) {
  const std::vector<Parameter> parameters = parameters_of(text);
  if (call.operands.size() > parameters.size()) {
    const auto given = static_cast<long long>(call.operands.size());
    fail(format("{} {} given, but it has {}: {}", counted(given, "argument"), given == 1 ? "is" : "are",
                parameters.size(), text));
  }
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    arguments[parameters[i].name] = builder.evaluate(call.operands[i]);
  }
  for (const auto& [keyword, value] : call.keywords) {
    const bool known = std::any_of(parameters.begin(), parameters.end(),
                                   [&keyword = keyword](const Parameter& of) { return of.name == keyword; });
    if (!known) fail(unknown_argument(keyword, name, parameters, text));
    if (arguments.contains(keyword)) fail(format("the argument {} is given twice", keyword));
    arguments[keyword] = builder.evaluate(value);
  }
  for (const Parameter& of : parameters) {
    if (arguments.contains(of.name)) continue;
    if (of.value.empty()) fail(format("the argument {} is missing", of.name));
    arguments[of.name] = builder.evaluate(parse_expression(of.value), {});
    arguments[of.name].column = column;
  }
}

FunctionCall::AxisOf FunctionCall::one_axis() const {
  const ExpressionOperand& x = tensor("x");
  if (of("axis").kind != ExpressionOperand::Kind::none) return {x, axis(x)};
  axes(x);  // reports a tensor of samples
  return {builder.reshaped(x, {x.shape.count()}), 0};
}

std::vector<int> FunctionCall::axes(const ExpressionOperand& x) const {
  std::vector<int> found;
  if (of("axis").kind == ExpressionOperand::Kind::none) {
    if (x.has_samples) {
      fail("axis is missing; without it, all samples would be one value, but samples do not depend on each other");
    }
    for (int axis = 0; axis < static_cast<int>(x.rank()); ++axis) found.push_back(axis);
    return found;
  }
  for (const std::int64_t number : whole_numbers("axis")) found.push_back(not_samples(x, axis_below(x.rank(), number)));
  std::sort(found.begin(), found.end());
  if (std::adjacent_find(found.begin(), found.end()) != found.end()) fail("an axis is named twice");
  return found;
}

}  // namespace trainctl::expression
