// Parses expressions of targets and predictions.
#include "core/metrics/output_expression.h"

#include <set>

#include "core/base/format.h"
#include "core/expression/syntax.h"

namespace trainctl {
namespace {

void add_names(const Expression& expression, std::set<std::string>& names) {
  if (expression.kind == Expression::Kind::name) names.insert(expression.text);
  for (const Expression& operand : expression.operands) add_names(operand, names);
  for (const auto& [keyword, value] : expression.keywords) add_names(value, names);
}

}  // namespace

void OutputExpression::check(Reader& reader) const {
  std::set<std::string> names;
  try {
    add_names(parse_expression(text.value), names);
  } catch (const ExpressionError& error) {
    reader.error(text.location, format("column {} of the expression: {}", error.column(), error.what()));
    return;
  }
  if (!names.contains("y_pred")) {
    reader.error(text.location, "the expression does not use y_pred, the output of the network");
  }
  for (const auto& [name, value] : constants) {
    if (name == "y_true" || name == "y_pred") {
      reader.error(text.location, format("'{}' cannot be set: it is a tensor", name));
    } else if (!names.contains(name)) {
      reader.error(text.location, format("the expression does not use '{}', which is set to {}", name, value));
    }
  }
}

}  // namespace trainctl
