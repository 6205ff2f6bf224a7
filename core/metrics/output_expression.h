// An expression of the targets and predictions of an output, which a loss or a metric of the config consists of.
#pragma once

#include <map>
#include <string>

#include "core/base/error.h"
#include "core/spec/values.h"

namespace trainctl {

struct OutputExpression {
  Located<std::string> text;
  std::map<std::string, double> constants;  // the values of names in the expression

  // Reports a mistake in the syntax, a constant that is named like a tensor or that the expression does not use, and an
  // expression that does not use y_pred.
  void check(Reader& reader) const;
};

}  // namespace trainctl
