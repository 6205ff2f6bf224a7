// The parts of an expression that match one character: classes such as [a-z&&[^aeiou]], and properties such as \p{Han}.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace trainctl {

// Characters as PCRE2 writes them: the items of a class without its brackets, and whether they are those left out.
struct CharacterSet {
  std::string items;
  bool negated = false;

  std::string text() const { return (negated ? "[^" : "[") + items + "]"; }
};

class ClassTranslator {
 public:
  explicit ClassTranslator(std::function<bool(const std::string&)> compiles);

  // The letters, marks, digits and connectors of \w; outside of a class also some Latin numbers, as Oniguruma has them.
  const std::string& word() const { return word_; }
  // Reads an escape that means a set, such as \h or \p{Han}, at `at` of the expression, which is moved behind it.
  // Returns false, and does not move, if the escape there is of another kind.
  bool read_set(std::string_view expression, std::size_t& at, bool in_class, CharacterSet& set) const;
  // Reads the escape of one character that PCRE2 reads differently (\v, \u4e00, \xe4) and returns its text. Returns an
  // empty text, and does not move, for other escapes.
  std::string read_character(std::string_view expression, std::size_t& at) const;
  // Reads the class that begins at `at`. Throws Error{data} if it does not end.
  std::string read_class(std::string_view expression, std::size_t& at, int level = 0) const;

 private:
  CharacterSet property(std::string name, bool negated) const;
  bool read_posix(std::string_view expression, std::size_t& at, CharacterSet& set) const;
  bool named_set(const std::string& name, CharacterSet& set) const;

  std::function<bool(const std::string&)> compiles_;
  std::string alphabetic_, word_;
};

}  // namespace trainctl
