// Parses expressions by recursive descent.
#include "core/expression/syntax.h"

#include "core/base/format.h"
#include "core/expression/expression_text.h"

namespace trainctl {
namespace {

constexpr std::size_t most_characters = 10'000;
constexpr int deepest = 1800;  // nested rules of the grammar; parentheses are nine of them

struct BinaryOperator {
  std::string_view sign;
  const char* function;
};

// Operators of one precedence; the longer sign before the one that it begins with.
constexpr BinaryOperator comparisons[] = {{"==", "equal"},         {"!=", "not_equal"}, {"<=", "less_equal"},
                                          {">=", "greater_equal"}, {"<", "less"},       {">", "greater"}};
constexpr BinaryOperator either[] = {{"|", "logical_or"}};
constexpr BinaryOperator one_of[] = {{"^", "logical_xor"}};
constexpr BinaryOperator both[] = {{"&", "logical_and"}};
constexpr BinaryOperator sums[] = {{"+", "add"}, {"-", "subtract"}};
constexpr BinaryOperator products[] = {
    {"//", "floor_divide"}, {"*", "multiply"}, {"/", "divide"}, {"%", "mod"}, {"@", "matmul"}};

Expression call(const char* function, int column, std::vector<Expression> operands) {
  Expression made;
  made.kind = Expression::Kind::call;
  made.column = column;
  made.text = function;
  made.operands = std::move(operands);
  return made;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Expression whole() {
    Expression result = comparison();
    text_.skip_spaces();
    if (!text_.at_end()) {
      if (text_.next() == ',') text_.fail("an expression is one value, without assignments and commas");
      text_.fail_at_character();
    }
    return result;
  }

 private:
  // Counts how deep the parser is, so that a text cannot exhaust the stack.
  class Depth {
   public:
    explicit Depth(Parser& parser) : parser_(parser) {
      if (++parser_.depth_ > deepest) parser_.text_.fail("the expression is nested too deeply");
    }
    ~Depth() { --parser_.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    Parser& parser_;
  };

  template <std::size_t n>
  const BinaryOperator* take_operator(const BinaryOperator (&operators)[n]) {
    for (const BinaryOperator& of : operators) {
      if (of.sign == "*" && text_.next_is("**")) continue;
      if (text_.next_is("&&") || text_.next_is("||")) text_.refuse_foreign_signs();
      if (text_.take(of.sign)) return &of;
    }
    return nullptr;
  }

  // Operators of equal precedence, from left to right.
  template <std::size_t n>
  Expression chain(const BinaryOperator (&operators)[n], Expression (Parser::*operand)()) {
    const Depth depth(*this);
    Expression left = (this->*operand)();
    for (;;) {
      text_.skip_spaces();
      const int place = text_.column();
      const BinaryOperator* found = take_operator(operators);
      if (found == nullptr) return left;
      Expression right = (this->*operand)();
      // 0 and 1 are conditions that are written as numbers.
      if (found->sign == "^" && right.kind == Expression::Kind::number && right.number != 0 && right.number != 1) {
        throw ExpressionError(place, "'^' is the exclusive or of two conditions; write ** for a power");
      }
      left = call(found->function, place, {std::move(left), std::move(right)});
      if (++operators_ > 1000) text_.fail("the expression has too many operators");
    }
  }

  Expression comparison() {
    const Depth depth(*this);
    Expression left = disjunction();
    text_.skip_spaces();
    const int place = text_.column();
    const BinaryOperator* found = take_operator(comparisons);
    if (found == nullptr) {
      text_.refuse_what_follows();
      return left;
    }
    Expression right = disjunction();
    for (const BinaryOperator& of : comparisons) {
      if (text_.next_is(of.sign)) text_.fail("comparisons cannot follow each other; write (a < b) & (b < c)");
    }
    text_.refuse_what_follows();
    return call(found->function, place, {std::move(left), std::move(right)});
  }
  Expression disjunction() { return chain(either, &Parser::exclusion); }
  Expression exclusion() { return chain(one_of, &Parser::conjunction); }
  Expression conjunction() { return chain(both, &Parser::sum); }
  Expression sum() { return chain(sums, &Parser::product); }
  Expression product() { return chain(products, &Parser::signed_value); }

  Expression signed_value() {
    const Depth depth(*this);
    text_.skip_spaces();
    const int place = text_.column();
    if (text_.take("+")) return signed_value();
    if (text_.take("~")) return call("logical_not", place, {signed_value()});
    if (!text_.take("-")) return power();
    Expression value = signed_value();
    if (value.kind != Expression::Kind::number) return call("negative", place, {std::move(value)});
    value.number = -value.number;
    value.column = place;
    return value;
  }

  // a ** b binds stronger than a sign before a, and from right to left.
  Expression power() {
    const Depth depth(*this);
    Expression base = with_subscripts();
    text_.skip_spaces();
    const int place = text_.column();
    if (!text_.take("**")) return base;
    return call("power", place, {std::move(base), signed_value()});
  }

  Expression with_subscripts() {
    Expression value = primary();
    while (text_.next_is("[")) {
      Expression indexed;
      indexed.kind = Expression::Kind::subscript;
      indexed.column = text_.column();
      text_.take("[");
      do {
        indexed.subscripts.push_back(subscript());
      } while (text_.take(",") && !text_.next_is("]"));
      text_.expect("]", "at the end of the subscripts");
      indexed.operands.push_back(std::move(value));
      value = std::move(indexed);
      if (++operators_ > 1000) text_.fail("the expression has too many operators");
    }
    return value;
  }

  Subscript subscript() {
    Subscript made;
    text_.skip_spaces();
    made.column = text_.column();
    if (text_.take("...")) {
      made.kind = Subscript::Kind::ellipsis;
      return made;
    }
    if (text_.at_name()) {
      const std::string_view name = text_.take_name();
      made.kind = Subscript::Kind::new_axis;
      if (name != "None" && !name.ends_with("newaxis")) {
        throw ExpressionError(made.column, "a subscript is a number, a slice such as 1:3, None or ...");
      }
      return made;
    }
    made.begin = text_.take_whole_number();
    if (!text_.take(":")) {
      if (!made.begin) text_.fail("a subscript is a number, a slice such as 1:3, None or ...");
      return made;
    }
    made.kind = Subscript::Kind::slice;
    made.end = text_.take_whole_number();
    if (text_.take(":")) made.step = text_.take_whole_number();
    return made;
  }

  Expression primary() {
    const Depth depth(*this);
    text_.skip_spaces();
    if (text_.at_end()) {
      text_.fail(text_.is_empty() ? "the expression is empty" : "the expression ends here, but a value is missing");
    }
    text_.refuse_foreign_signs();
    const char c = text_.next();
    if ((c >= '0' && c <= '9') || c == '.') return number();
    if (text_.at_name()) return name();
    if (c == '\'' || c == '"') return quoted(c);
    if (c == '(' || c == '[') return between(c == '(' ? ")" : "]");
    text_.fail_at_character("; a value is missing");
  }

  Expression number() {
    Expression made;
    made.kind = Expression::Kind::number;
    made.column = text_.column();
    const ExpressionText::Number number = text_.take_number();
    made.number = number.value;
    made.whole = number.whole;
    return made;
  }

  Expression quoted(char quote) {
    Expression made;
    made.kind = Expression::Kind::text;
    made.column = text_.column();
    made.text = text_.take_quoted(quote);
    return made;
  }

  // A value in parentheses, or a list.
  Expression between(const char* close) {
    Expression made;
    made.kind = Expression::Kind::list;
    made.column = text_.column();
    text_.take_character();
    bool comma = false;
    while (!text_.next_is(close)) {
      made.operands.push_back(comparison());
      if (!text_.take(",")) break;
      comma = true;
    }
    text_.expect(close, "at the end of the list or the parentheses");
    if (*close == ')' && made.operands.size() == 1 && !comma) return std::move(made.operands[0]);
    return made;
  }

  Expression name() {
    Expression made;
    made.kind = Expression::Kind::name;
    made.column = text_.column();
    made.text = text_.take_name();
    ExpressionText::refuse_foreign_name(made.text, made.column);
    if (made.text == "True" || made.text == "False") {
      made.kind = Expression::Kind::boolean;
      made.number = made.text == "True" ? 1 : 0;
    } else if (made.text == "None") {
      made.kind = Expression::Kind::none;
    } else if (text_.take("(")) {
      made.kind = Expression::Kind::call;
      arguments(made);
    }
    return made;
  }

  void arguments(Expression& to) {
    while (!text_.next_is(")")) {
      text_.skip_spaces();
      const std::size_t begin = text_.place();
      const std::string_view word = text_.at_name() ? text_.take_name() : std::string_view();
      if (!word.empty() && text_.next_is("=") && !text_.next_is("==")) {
        text_.take("=");
        to.keywords.push_back({std::string(word), comparison()});
      } else {
        text_.return_to(begin);
        if (!to.keywords.empty()) text_.fail("an argument without a name follows one with a name");
        to.operands.push_back(comparison());
      }
      if (!text_.take(",")) break;
    }
    text_.expect(")", "at the end of the arguments");
  }

  ExpressionText text_;
  int depth_ = 0, operators_ = 0;
};

}  // namespace

std::string ExpressionError::in_words() const { return format("column {} of the expression: {}", column_, what()); }

std::set<std::string> names_in(const Expression& expression) {
  std::set<std::string> names;
  if (expression.kind == Expression::Kind::name) names.insert(expression.text);
  for (const Expression& operand : expression.operands) names.merge(names_in(operand));
  for (const auto& [keyword, value] : expression.keywords) names.merge(names_in(value));
  return names;
}

Expression parse_expression(std::string_view text) {
  if (text.size() > most_characters) {
    throw ExpressionError(1, format("the expression has more than {} characters", most_characters));
  }
  return Parser(text).whole();
}

}  // namespace trainctl
