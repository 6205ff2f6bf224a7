// Reads the text of an expression from left to right: signs, words and numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace trainctl {

// Throws ExpressionError for mistakes.
class ExpressionText {
 public:
  explicit ExpressionText(std::string_view text) : text_(text) {}

  bool is_empty() const { return text_.empty(); }
  bool at_end() const { return at_ >= text_.size(); }
  // The next character, or 0 at the end.
  char next() const { return at_end() ? '\0' : text_[at_]; }
  // Whether a name begins at the next character.
  bool at_name() const;
  int column() const { return static_cast<int>(at_) + 1; }  // of the next character, from 1
  std::size_t place() const { return at_; }
  void return_to(std::size_t place) { at_ = place; }

  void skip_spaces();
  // Skip spaces; next_is() returns whether the sign follows them, and take() also reads it.
  bool next_is(std::string_view sign);
  bool take(std::string_view sign);
  // Reads the sign; `what` says where it is missing: "at the end of the arguments".
  void expect(std::string_view sign, const char* what);
  // Reads one character.
  void take_character() { ++at_; }
  // Reads letters, digits, _ and dots.
  std::string_view take_name();
  // Reads a whole number after spaces; empty if none follows.
  std::optional<std::int64_t> take_whole_number();
  struct Number {
    double value = 0;
    bool whole = false;  // whether it is written as a whole number
  };
  Number take_number();
  // Reads a text between two quotes of this kind, the first of which is the next character.
  std::string_view take_quoted(char quote);

  // Throws an error at the next character.
  [[noreturn]] void fail(const std::string& message) const;
  // Throws the error that the next character is not expected; `more` follows these words.
  [[noreturn]] void fail_at_character(const char* more = "") const;
  // Refuses a name, which begins at the column, if it is a word of Python that expressions do not have. Words that may
  // be names are refused only where an operator is expected.
  static void refuse_foreign_name(std::string_view name, int column);
  // Refuses a sign of Python or C, unless it begins with an operator that an expression may have here.
  void refuse_foreign_signs();
  // Refuses what cannot follow a whole value: a word, a number, or a sign of another language.
  void refuse_what_follows();

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace trainctl
