// The syntax of expressions: texts such as "mean(maximum(0, margin - y_true * y_pred))", in Python's notation.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace trainctl {

// A mistake in an expression. what() says what is wrong, without the column.
class ExpressionError : public std::runtime_error {
 public:
  ExpressionError(int column, const std::string& message) : std::runtime_error(message), column_(column) {}
  int column() const { return column_; }  // of the mistake in the text, from 1
  // The mistake with its column, as reported to the user.
  std::string in_words() const;

 private:
  int column_;
};

// One item between the brackets of x[...].
struct Subscript {
  enum class Kind { element, slice, new_axis, ellipsis };
  Kind kind = Kind::element;
  std::optional<std::int64_t> begin, end, step;  // element: `begin` alone; slice: those that are written
  int column = 0;
};

// A node of the tree of an expression. Operators are calls of the functions of keras.ops that compute the same: a + b
// is add(a, b).
struct Expression {
  struct Keyword;  // an argument with a name
  enum class Kind {
    number,    // `number`
    boolean,   // `number`, 0 or 1
    none,      // None
    text,      // `text`, a literal between quotes
    name,      // `text`
    call,      // the function `text` of `operands` and `keywords`
    list,      // `operands`, between brackets or parentheses
    subscript  // operands[0] with `subscripts`
  };
  Kind kind = Kind::none;
  int column = 0;  // of its first character, or of its operator; from 1
  double number = 0;
  bool whole = false;  // a number that is written as a whole number
  std::string text;
  std::vector<Expression> operands;
  std::vector<Keyword> keywords;
  std::vector<Subscript> subscripts;
};

struct Expression::Keyword {
  std::string name;
  Expression value;
};

// Parses an expression of at most 10,000 characters. The operators are those of Python: ** (power), unary - and ~, * /
// // % @, + -, & ^ |, and comparisons, from the one that binds strongest; names may have dots ("ops.exp"). Throws
// ExpressionError.
Expression parse_expression(std::string_view text);

// The names that an expression reads, without those of functions.
std::set<std::string> names_in(const Expression& expression);

}  // namespace trainctl
