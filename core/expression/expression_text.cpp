// Recognizes signs, words and numbers, and the words and signs of Python and C that expressions do not have.
#include "core/expression/expression_text.h"

#include <charconv>

#include "core/base/format.h"
#include "core/expression/syntax.h"

namespace trainctl {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A word or a sign, and the advice in the error about it.
struct Foreign {
  std::string_view word;
  const char* advice;
  bool may_be_name = false;  // refused only where an operator is expected
};
constexpr Foreign foreign_words[] = {{"if", "use where(condition, a, b)"},
                                     {"else", "use where(condition, a, b)", true},
                                     {"and", "use & between conditions in parentheses: (a > 0) & (b > 0)"},
                                     {"or", "use | between conditions in parentheses: (a > 0) | (b > 0)"},
                                     {"not", "use ~ before a condition in parentheses: ~(a > 0)"},
                                     {"is", "use == or !=", true},
                                     {"in", "use == for each value, with | between the conditions", true},
                                     {"lambda", "write the value itself"},
                                     {"for", "functions and operators compute with all elements of a tensor at once"},
                                     {"return", "write the value itself", true}};
constexpr Foreign foreign_signs[] = {{"&&", "use & between conditions in parentheses: (a > 0) & (b > 0)"},
                                     {"||", "use | between conditions in parentheses: (a > 0) | (b > 0)"},
                                     {"!", "use ~ before a condition in parentheses: ~(a > 0)"},
                                     {"?", "use where(condition, a, b)"},
                                     {"=", "an expression is one value, without assignments; == compares"}};

// What is known about a word; null if other languages have no such word.
const Foreign* find_foreign_word(std::string_view word) {
  for (const Foreign& of : foreign_words) {
    if (of.word == word) return &of;
  }
  return nullptr;
}

[[noreturn]] void refuse(std::string_view what, const char* advice, int column) {
  throw ExpressionError(column, format("'{}' has no meaning in an expression; {}", what, advice));
}

}  // namespace

bool ExpressionText::at_name() const { return !at_end() && is_letter(text_[at_]); }

void ExpressionText::skip_spaces() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
}

bool ExpressionText::next_is(std::string_view sign) {
  skip_spaces();
  return text_.substr(at_).starts_with(sign);
}

bool ExpressionText::take(std::string_view sign) {
  if (!next_is(sign)) return false;
  at_ += sign.size();
  return true;
}

void ExpressionText::expect(std::string_view sign, const char* what) {
  if (!take(sign)) fail(format("'{}' is missing {}", sign, what));
}

std::string_view ExpressionText::take_name() {
  const std::size_t begin = at_;
  while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]) || text_[at_] == '.')) ++at_;
  return text_.substr(begin, at_ - begin);
}

std::optional<std::int64_t> ExpressionText::take_whole_number() {
  skip_spaces();
  std::int64_t value = 0;
  const char* begin = text_.data() + at_;
  const auto [end, problem] = std::from_chars(begin, text_.data() + text_.size(), value);
  if (problem == std::errc::result_out_of_range) fail("the number is too large");
  if (problem != std::errc()) return std::nullopt;
  at_ += static_cast<std::size_t>(end - begin);
  return value;
}

ExpressionText::Number ExpressionText::take_number() {
  Number number;
  const char* begin = text_.data() + at_;
  const auto [end, problem] = std::from_chars(begin, text_.data() + text_.size(), number.value);
  if (problem != std::errc()) fail("this is not a number");
  const std::string_view digits(begin, static_cast<std::size_t>(end - begin));
  number.whole = digits.find_first_of(".eE") == std::string_view::npos;
  at_ += digits.size();
  if (at_ < text_.size() && (is_letter(text_[at_]) || text_[at_] == '.'))
    fail("an operator is missing after the number");
  return number;
}

std::string_view ExpressionText::take_quoted(char quote) {
  const std::size_t end = text_.find(quote, at_ + 1);
  if (end == std::string_view::npos) fail("the text is not closed by its quote");
  const std::string_view text = text_.substr(at_ + 1, end - at_ - 1);
  at_ = end + 1;
  return text;
}

void ExpressionText::fail(const std::string& message) const { throw ExpressionError(column(), message); }

void ExpressionText::fail_at_character(const char* more) const {
  fail(format("'{}' is not expected here{}", text_.substr(at_, 1), more));
}

void ExpressionText::refuse_foreign_name(std::string_view name, int column) {
  const Foreign* foreign = find_foreign_word(name);
  if (foreign != nullptr && !foreign->may_be_name) refuse(name, foreign->advice, column);
}

void ExpressionText::refuse_foreign_signs() {
  skip_spaces();
  for (const Foreign& of : foreign_signs) {
    if (next_is(of.word) && !next_is("!=") && !next_is("==")) refuse(of.word, of.advice, column());
  }
}

void ExpressionText::refuse_what_follows() {
  refuse_foreign_signs();
  if (at_ >= text_.size() || !(is_letter(text_[at_]) || is_digit(text_[at_]))) return;
  const int place = column();
  const std::string_view word = take_name();
  if (const Foreign* foreign = find_foreign_word(word)) refuse(word, foreign->advice, place);
  throw ExpressionError(place, format("an operator or a comma is missing before '{}'", word));
}

}  // namespace trainctl
