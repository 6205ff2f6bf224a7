// Parses expressions by recursive descent.
#include "core/expression/syntax.h"

#include <charconv>

#include "core/base/format.h"
#include "core/expression/foreign_words.h"

namespace trainctl {
namespace {

constexpr std::size_t most_characters = 10'000;
constexpr int deepest = 1800;  // nested rules of the grammar; parentheses are nine of them

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

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
    skip_spaces();
    if (at_ < text_.size()) {
      if (text_[at_] == ',') fail("an expression is one value, without assignments and commas");
      fail(format("'{}' is not expected here", text_.substr(at_, 1)));
    }
    return result;
  }

 private:
  // Counts how deep the parser is, so that a text cannot exhaust the stack.
  class Depth {
   public:
    explicit Depth(Parser& parser) : parser_(parser) {
      if (++parser_.depth_ > deepest) parser_.fail("the expression is nested too deeply");
    }
    ~Depth() { --parser_.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    Parser& parser_;
  };

  [[noreturn]] void fail(const std::string& message) const { throw ExpressionError(column(), message); }
  int column() const { return static_cast<int>(at_) + 1; }

  [[noreturn]] void refuse(std::string_view what, const char* advice, int place) const {
    throw ExpressionError(place, format("'{}' has no meaning in an expression; {}", what, advice));
  }
  // Refuses a sign of another language, unless it begins with an operator that an expression may have here.
  void refuse_foreign_signs() {
    skip_spaces();
    for (const Foreign& of : foreign_signs) {
      if (next_is(of.word) && !next_is("!=") && !next_is("==")) refuse(of.word, of.advice, column());
    }
  }
  // Refuses what cannot follow a whole value: a word, or a sign of another language.
  void refuse_what_follows() {
    refuse_foreign_signs();
    if (at_ >= text_.size() || !(is_letter(text_[at_]) || is_digit(text_[at_]))) return;
    const int place = column();
    const std::string_view word = take_name();
    if (const Foreign* foreign = find_foreign_word(word)) refuse(word, foreign->advice, place);
    throw ExpressionError(place, format("an operator or a comma is missing before '{}'", word));
  }

  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  bool next_is(std::string_view sign) {
    skip_spaces();
    return text_.substr(at_).starts_with(sign);
  }
  bool take(std::string_view sign) {
    if (!next_is(sign)) return false;
    at_ += sign.size();
    return true;
  }
  void expect(std::string_view sign, const char* what) {
    if (!take(sign)) fail(format("'{}' is missing {}", sign, what));
  }
  std::string_view take_name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]) || text_[at_] == '.')) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  template <std::size_t n>
  const BinaryOperator* take_operator(const BinaryOperator (&operators)[n]) {
    for (const BinaryOperator& of : operators) {
      if (of.sign == "*" && next_is("**")) continue;
      if (next_is("&&") || next_is("||")) refuse_foreign_signs();
      if (take(of.sign)) return &of;
    }
    return nullptr;
  }

  // Operators of equal precedence, from left to right.
  template <std::size_t n>
  Expression chain(const BinaryOperator (&operators)[n], Expression (Parser::*operand)()) {
    const Depth depth(*this);
    Expression left = (this->*operand)();
    for (;;) {
      skip_spaces();
      const int place = column();
      const BinaryOperator* found = take_operator(operators);
      if (found == nullptr) return left;
      Expression right = (this->*operand)();
      // 0 and 1 are conditions that are written as numbers.
      if (found->sign == "^" && right.kind == Expression::Kind::number && right.number != 0 && right.number != 1) {
        throw ExpressionError(place, "'^' is the exclusive or of two conditions; write ** for a power");
      }
      left = call(found->function, place, {std::move(left), std::move(right)});
      if (++operators_ > 1000) fail("the expression has too many operators");
    }
  }

  Expression comparison() {
    const Depth depth(*this);
    Expression left = disjunction();
    skip_spaces();
    const int place = column();
    const BinaryOperator* found = take_operator(comparisons);
    if (found == nullptr) {
      refuse_what_follows();
      return left;
    }
    Expression right = disjunction();
    for (const BinaryOperator& of : comparisons) {
      if (next_is(of.sign)) fail("comparisons cannot follow each other; write (a < b) & (b < c)");
    }
    refuse_what_follows();
    return call(found->function, place, {std::move(left), std::move(right)});
  }
  Expression disjunction() { return chain(either, &Parser::exclusion); }
  Expression exclusion() { return chain(one_of, &Parser::conjunction); }
  Expression conjunction() { return chain(both, &Parser::sum); }
  Expression sum() { return chain(sums, &Parser::product); }
  Expression product() { return chain(products, &Parser::signed_value); }

  Expression signed_value() {
    const Depth depth(*this);
    skip_spaces();
    const int place = column();
    if (take("+")) return signed_value();
    if (take("~")) return call("logical_not", place, {signed_value()});
    if (!take("-")) return power();
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
    skip_spaces();
    const int place = column();
    if (!take("**")) return base;
    return call("power", place, {std::move(base), signed_value()});
  }

  Expression with_subscripts() {
    Expression value = primary();
    while (next_is("[")) {
      Expression indexed;
      indexed.kind = Expression::Kind::subscript;
      indexed.column = column();
      take("[");
      do {
        indexed.subscripts.push_back(subscript());
      } while (take(",") && !next_is("]"));
      expect("]", "at the end of the subscripts");
      indexed.operands.push_back(std::move(value));
      value = std::move(indexed);
      if (++operators_ > 1000) fail("the expression has too many operators");
    }
    return value;
  }

  Subscript subscript() {
    Subscript made;
    skip_spaces();
    made.column = column();
    if (take("...")) {
      made.kind = Subscript::Kind::ellipsis;
      return made;
    }
    if (at_ < text_.size() && is_letter(text_[at_])) {
      const std::string_view name = take_name();
      made.kind = Subscript::Kind::new_axis;
      if (name != "None" && !name.ends_with("newaxis")) {
        throw ExpressionError(made.column, "a subscript is a number, a slice such as 1:3, None or ...");
      }
      return made;
    }
    made.begin = take_whole_number();
    if (!take(":")) {
      if (!made.begin) fail("a subscript is a number, a slice such as 1:3, None or ...");
      return made;
    }
    made.kind = Subscript::Kind::slice;
    made.end = take_whole_number();
    if (take(":")) made.step = take_whole_number();
    return made;
  }

  std::optional<std::int64_t> take_whole_number() {
    skip_spaces();
    std::int64_t value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, problem] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (problem == std::errc::result_out_of_range) fail("the number is too large");
    if (problem != std::errc()) return std::nullopt;
    at_ += static_cast<std::size_t>(end - begin);
    return value;
  }

  Expression primary() {
    const Depth depth(*this);
    skip_spaces();
    if (at_ >= text_.size())
      fail(text_.empty() ? "the expression is empty" : "the expression ends here, but a value is missing");
    refuse_foreign_signs();
    const char c = text_[at_];
    if (is_digit(c) || c == '.') return number();
    if (is_letter(c)) return name();
    if (c == '\'' || c == '"') return text(c);
    if (c == '(' || c == '[') return between(c == '(' ? ")" : "]");
    fail(format("'{}' is not expected here; a value is missing", text_.substr(at_, 1)));
  }

  Expression number() {
    Expression made;
    made.kind = Expression::Kind::number;
    made.column = column();
    const char* begin = text_.data() + at_;
    const auto [end, problem] = std::from_chars(begin, text_.data() + text_.size(), made.number);
    if (problem != std::errc()) fail("this is not a number");
    const std::string_view digits(begin, static_cast<std::size_t>(end - begin));
    made.whole = digits.find_first_of(".eE") == std::string_view::npos;
    at_ += digits.size();
    if (at_ < text_.size() && (is_letter(text_[at_]) || text_[at_] == '.'))
      fail("an operator is missing after the number");
    return made;
  }

  Expression text(char quote) {
    Expression made;
    made.kind = Expression::Kind::text;
    made.column = column();
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("the text is not closed by its quote");
    made.text = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return made;
  }

  // A value in parentheses, or a list.
  Expression between(const char* close) {
    Expression made;
    made.kind = Expression::Kind::list;
    made.column = column();
    ++at_;
    bool comma = false;
    while (!next_is(close)) {
      made.operands.push_back(comparison());
      if (!take(",")) break;
      comma = true;
    }
    expect(close, "at the end of the list or the parentheses");
    if (*close == ')' && made.operands.size() == 1 && !comma) return std::move(made.operands[0]);
    return made;
  }

  Expression name() {
    Expression made;
    made.kind = Expression::Kind::name;
    made.column = column();
    made.text = take_name();
    const Foreign* foreign = find_foreign_word(made.text);
    if (foreign && !foreign->may_be_name) refuse(made.text, foreign->advice, made.column);
    if (made.text == "True" || made.text == "False") {
      made.kind = Expression::Kind::boolean;
      made.number = made.text == "True" ? 1 : 0;
    } else if (made.text == "None") {
      made.kind = Expression::Kind::none;
    } else if (take("(")) {
      made.kind = Expression::Kind::call;
      arguments(made);
    }
    return made;
  }

  void arguments(Expression& to) {
    while (!next_is(")")) {
      skip_spaces();
      const std::size_t begin = at_;
      const std::string_view word = at_ < text_.size() && is_letter(text_[at_]) ? take_name() : std::string_view();
      if (!word.empty() && next_is("=") && !next_is("==")) {
        take("=");
        to.keywords.push_back({std::string(word), comparison()});
      } else {
        at_ = begin;
        if (!to.keywords.empty()) fail("an argument without a name follows one with a name");
        to.operands.push_back(comparison());
      }
      if (!take(",")) break;
    }
    expect(")", "at the end of the arguments");
  }

  std::string_view text_;
  std::size_t at_ = 0;
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
