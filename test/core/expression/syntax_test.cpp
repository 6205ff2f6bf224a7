// Tests the syntax of expressions: the trees of texts, and the columns of mistakes.
#include "core/expression/syntax.h"

#include <tuple>

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
  CHECK(mistake("a, b") == "2: an expression is one value, without assignments and commas");
  CHECK(mistake("a < b < c") == "7: comparisons cannot follow each other; write (a < b) & (b < c)");
  CHECK(mistake("f(axis=1, x)") == "11: an argument without a name follows one with a name");
  CHECK(mistake("a b") == "3: an operator or a comma is missing before 'b'");
  CHECK(mistake("f(a b)") == "5: an operator or a comma is missing before 'b'");
  CHECK(mistake("(a) 2") == "5: an operator or a comma is missing before '2'");
  CHECK(mistake("'ab") == "1: the text is not closed by its quote");
  CHECK(mistake(std::string(5000, '(')).find("nested too deeply") != std::string::npos);
  CHECK(mistake(std::string(20'000, '1')) == "1: the expression has more than 10000 characters");
}

TEST_CASE("words and signs of Python and C that expressions lack are refused with what to write instead") {
  const std::string where = "use where(condition, a, b)", both = "use & between conditions in parentheses",
                    either = "use | between conditions in parentheses", other = "use ~ before a condition";
  const std::tuple<std::string, int, std::string, std::string> cases[] = {
      {"a if c else b", 3, "if", where},
      {"(a if c else b)", 4, "if", where},
      {"sum(a if c else b, axis=-1)", 7, "if", where},
      {"[a, b if c else d]", 7, "if", where},
      {"c ? a : b", 3, "?", where},
      {"(a > 0) and (b > 0)", 9, "and", both},
      {"a > 0 and b > 0", 7, "and", both},
      {"where(a > 0 or b, 1, 2)", 13, "or", either},
      {"not a", 1, "not", other},
      {"where(not a, 1, 2)", 7, "not", other},
      {"a && b", 3, "&&", both},
      {"a || b", 3, "||", either},
      {"!a", 1, "!", other},
      {"a is b", 3, "is", "use == or !="},
      {"a in b", 3, "in", "use == for each value"},
      {"in in b", 4, "in", "use == for each value"},
      {"a else b", 3, "else", where},
      {"lambda x: x", 1, "lambda", "write the value itself"},
      {"[x for x in y]", 4, "for", "functions and operators compute with all elements"},
      {"a = b", 3, "=", "an expression is one value, without assignments; == compares"},
      {"(a = b)", 4, "=", "an expression is one value, without assignments; == compares"}};
  for (const auto& [text, column, word, advice] : cases) {
    CAPTURE(text, mistake(text));
    CHECK(mistake(text).starts_with(format("{}: '{}' has no meaning in an expression; {}", column, word, advice)));
  }
  CHECK(mistake("x^2") == "2: '^' is the exclusive or of two conditions; write ** for a power");
  for (const char* known : {"a != b", "a == b", "f(a=b == c)", "a ** 2 % 3 // 4", "order + index", "(a > 0) ^ (b > 0)",
                            "notes + island", "-a & b | c", "in + q", "where(is, else, return) * in",
                            "sum(in, axis=-1)", "(a > 0) ^ 1", "where((a > 0) ^ 0, a, b)"}) {
    CAPTURE(known);
    CHECK(mistake(known) == "none");
  }
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
