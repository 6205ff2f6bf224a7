// Tests the syntax of expressions: the trees of texts, and the columns of mistakes.
#include "core/expression/syntax.h"

#include "core/base/format.h"
#include "core/base/random.h"
#include "test/catch.h"

namespace trainctl::test::syntax_test {
namespace {

std::string shown(const std::optional<std::int64_t>& value) { return value ? std::to_string(*value) : ""; }

// The tree as text, with all functions written as calls.
std::string written(const Expression& of) {
  std::string text;
  const auto list = [&](const char* open, const char* close) {
    std::string items;
    for (const Expression& operand : of.operands) items += (items.empty() ? "" : ", ") + written(operand);
    for (const auto& [name, value] : of.keywords) items += (items.empty() ? "" : ", ") + name + "=" + written(value);
    return open + items + close;
  };
  switch (of.kind) {
    case Expression::Kind::number:
      return format("{}{}", of.number, of.whole ? "" : "f");
    case Expression::Kind::boolean:
      return of.number != 0 ? "True" : "False";
    case Expression::Kind::none:
      return "None";
    case Expression::Kind::text:
      return "'" + of.text + "'";
    case Expression::Kind::name:
      return of.text;
    case Expression::Kind::call:
      return of.text + list("(", ")");
    case Expression::Kind::list:
      return list("[", "]");
    case Expression::Kind::subscript:
      break;
  }
  text = written(of.operands[0]) + "[";
  for (std::size_t i = 0; i < of.subscripts.size(); ++i) {
    const Subscript& at = of.subscripts[i];
    text += i > 0 ? "," : "";
    if (at.kind == Subscript::Kind::element) text += shown(at.begin);
    if (at.kind == Subscript::Kind::slice) text += shown(at.begin) + ":" + shown(at.end) + ":" + shown(at.step);
    if (at.kind == Subscript::Kind::new_axis) text += "None";
    if (at.kind == Subscript::Kind::ellipsis) text += "...";
  }
  return text + "]";
}

std::string tree(const std::string& text) { return written(parse_expression(text)); }

std::string mistake(const std::string& text) {
  try {
    parse_expression(text);
  } catch (const ExpressionError& error) {
    return format("{}: {}", error.column(), error.what());
  }
  return "none";
}

}  // namespace

TEST_CASE("operators bind as in Python") {
  CHECK(tree("a + b * c") == "add(a, multiply(b, c))");
  CHECK(tree("a - b - c") == "subtract(subtract(a, b), c)");
  CHECK(tree("a / b * c") == "multiply(divide(a, b), c)");
  CHECK(tree("(a + b) * c") == "multiply(add(a, b), c)");
  CHECK(tree("-a ** 2") == "negative(power(a, 2))");
  CHECK(tree("2 ** -x ** 3") == "power(2, negative(power(x, 3)))");
  CHECK(tree("a // b % c @ d") == "matmul(mod(floor_divide(a, b), c), d)");
  CHECK(tree("a < b + 1") == "less(a, add(b, 1))");
  CHECK(tree("(a >= 0) & ~(b != 1) | c") ==
        "logical_or(logical_and(greater_equal(a, 0), logical_not(not_equal(b, 1))), c)");
  CHECK(tree("-1.5e-3 + +x") == "add(-0.0015f, x)");
}

TEST_CASE("calls, lists and subscripts") {
  CHECK(tree("mean(maximum(0, margin - y_true * y_pred))") ==
        "mean(maximum(0, subtract(margin, multiply(y_true, y_pred))))");
  CHECK(tree("sum(x, axis=(1, -1), keepdims=True)") == "sum(x, axis=[1, -1], keepdims=True)");
  CHECK(tree("keras.ops.einsum(\"bi,bj->bij\", x, y,)") == "keras.ops.einsum('bi,bj->bij', x, y)");
  CHECK(tree("f(x == y)") == "f(equal(x, y))");
  CHECK(tree("x[:, 1:-1, ..., None, 3, ::2]") == "x[::,1:-1:,...,None,3,::2]");
  CHECK(tree("concatenate([x, y[0]])") == "concatenate([x, y[0]])");
  CHECK(tree("(x,)") == "[x]");
  CHECK(tree("sum(x, axis=None)") == "sum(x, axis=None)");
}

TEST_CASE("mistakes have their column and a reason") {
  CHECK(mistake("") == "1: the expression is empty");
  CHECK(mistake("a + ") == "5: the expression ends here, but a value is missing");
  CHECK(mistake("a + * b") == "5: '*' is not expected here; a value is missing");
  CHECK(mistake("exp(x") == "6: ')' is missing at the end of the arguments");
  CHECK(mistake("(a + b") == "7: ')' is missing at the end of the list or the parentheses");
  CHECK(mistake("x[1") == "4: ']' is missing at the end of the subscripts");
  CHECK(mistake("x[a]") == "3: a subscript is a number, a slice such as 1:3, None or ...");
  CHECK(mistake("2x") == "2: an operator is missing after the number");
  CHECK(mistake("a = b") == "3: an expression is one value, without assignments and commas");
  CHECK(mistake("a < b < c") == "7: comparisons cannot follow each other; write (a < b) & (b < c)");
  CHECK(mistake("f(axis=1, x)") == "11: an argument without a name follows one with a name");
  CHECK(mistake("a if b") == "3: 'i' is not expected here");
  CHECK(mistake("'ab") == "1: the text is not closed by its quote");
  CHECK(mistake(std::string(5000, '(')).find("nested too deeply") != std::string::npos);
  CHECK(mistake(std::string(20'000, '1')) == "1: the expression has more than 10000 characters");
}

TEST_CASE("random texts are parsed or refused") {
  const RandomKey key{7, Purpose::synthetic, 0, 0};
  const std::string pieces[] = {"x", "y1",  "(",  ")",  "[",   "]", "+",      "-", "*",  "**",  "/",    "//",
                                "%", "@",   "<",  "==", "&",   "~", ",",      "=", ":",  "...", "None", "True",
                                "1", "2.5", "1e", ".",  "sum", "'", "\"ab\"", " ", "\n", "#"};
  int parsed = 0;
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    std::string text;
    for (std::uint32_t k = 0; k < 3; ++k) {
      for (const std::uint32_t number : key.block(i, k)) text += pieces[number % std::size(pieces)];
    }
    try {
      parse_expression(text);
      ++parsed;
    } catch (const ExpressionError& error) {
      CHECK(error.column() >= 1);
      CHECK(error.column() <= static_cast<int>(text.size()) + 1);
    }
  }
  CHECK(parsed > 0);
}

}  // namespace trainctl::test::syntax_test
