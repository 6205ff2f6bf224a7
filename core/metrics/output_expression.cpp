// Parses expressions of targets and predictions.
#include "core/metrics/output_expression.h"

#include <set>

#include "core/base/format.h"
#include "core/expression/syntax.h"

namespace trainctl {
namespace {

// A question about the only unknown name of an expression without y_pred, which is probably meant; "" if there is none.
std::string misspelt(const std::set<std::string>& names, const std::map<std::string, double>& constants) {
  std::string unknown;
  for (const std::string& name : names) {
    if (name == "y_true" || name == "pi" || name == "e" || constants.contains(name)) continue;
    if (!unknown.empty()) return "";
    unknown = name;
  }
  return unknown.empty() ? "" : format("; did you mean it by '{}'?", unknown);
}

}  // namespace

void OutputExpression::check(Reader& reader) const {
  std::set<std::string> names;
  try {
    names = names_in(parse_expression(text.value));
  } catch (const ExpressionError& error) {
    reader.error(text.location, error.in_words());
    return;
  }
  if (!names.contains("y_pred")) {
    reader.error(text.location,
                 "the expression does not use y_pred, the output of the network" + misspelt(names, constants));
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
