// The functions of expressions, with the names and arguments of keras.ops.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/layers/expression/builder.h"

namespace trainctl {

// Evaluates the arguments of a call, and the function. Throws ExpressionError if the function is unknown or if its
// arguments do not fit.
ExpressionOperand call_function(ExpressionBuilder& builder, const Expression& call);

// The elements of x along a dimension that a subscript names, which stays with size 1 for a single element.
ExpressionOperand sliced(ExpressionBuilder& builder, const ExpressionOperand& x, int axis, const Subscript& subscript);

// The name in keras.ops of the function that an expression calls, without its module: "mean" for tf.reduce_mean(x).
// Throws ExpressionError.
std::string function_name(const Expression& call);

// Whether a name is what other libraries call the gradient of one value with respect to another one, which expressions
// do not have.
bool is_gradient(std::string_view function);
// The message about a call of such a function; `reason` says which ops have no second derivatives.
std::string gradient_refusal(std::string_view function, std::string_view reason);

// The names of all functions, sorted.
std::vector<std::string> expression_functions();

}  // namespace trainctl
