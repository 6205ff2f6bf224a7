// Parses expressions of targets and predictions.
#include "core/metrics/output_expression.h"

#include <set>

#include "core/base/format.h"
#include "core/expression/syntax.h"

namespace trainctl {
void OutputExpression::check(Reader& reader) const {
  std::set<std::string> names;
  try {
    names = names_in(parse_expression(text.value));
  } catch (const ExpressionError& error) {
    reader.error(text.location, error.in_words());
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
