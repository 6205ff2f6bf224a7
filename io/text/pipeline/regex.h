// Regular expressions of tokenizer.json, in Oniguruma's syntax, compiled by PCRE2 with Unicode properties.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace trainctl {

class Regex {
 public:
  // Throws Error{data} that says where the expression is wrong.
  explicit Regex(const std::string& expression);
  ~Regex();
  Regex(const Regex&) = delete;
  Regex& operator=(const Regex&) = delete;

  // Finds the first match in `text`, which is UTF-8, from the offset `from`; false if there is none. An empty match has
  // begin == end. Threads may share the object. Throws Error{data} if the search takes too many steps.
  bool find(std::string_view text, std::size_t from, std::size_t& begin, std::size_t& end) const;

 private:
  struct Code;
  std::unique_ptr<Code> code_;
  std::string expression_;
};

// The matches in a text, in their order and without overlap. An empty match is one, too, but not directly after another
// match. An empty text has none.
class RegexMatches {
 public:
  // Both must outlive the object; the text is UTF-8.
  RegexMatches(const Regex& regex, std::string_view text) : regex_(&regex), text_(text), done_(text.empty()) {}

  // Moves to the next match; false if there is none. Throws as Regex::find.
  bool next();
  std::size_t begin() const { return begin_; }
  std::size_t end() const { return end_; }
  bool empty() const { return begin_ == end_; }

 private:
  const Regex* regex_;
  std::string_view text_;
  bool done_, any_ = false;  // whether no match is left, and whether one was found
  std::size_t at_ = 0, begin_ = 0, end_ = 0;
};

}  // namespace trainctl
