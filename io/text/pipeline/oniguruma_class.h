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

  // An expression that matches one of the characters. Without items, it matches nothing, or if negated everything.
  std::string text() const;
  // Writes a negated set as one that is not negated. Returns false, and changes nothing, if PCRE2 has no items for it.
  bool list();
  // Adds the other cases of the letters of a set such as \p{Lu}, which PCRE2 does not do for the option i.
  void add_cases();
};

// Throws Error{data}: `what` says why the expression has no translation.
[[noreturn]] void throw_untranslated(std::string_view expression, const std::string& what);

class ClassTranslator {
 public:
  explicit ClassTranslator(std::function<bool(const std::string&)> compiles);

  // The letters, marks, digits and connectors of \w; outside of a class also some Latin numbers, as Oniguruma has them.
  const std::string& word() const { return word_; }
  // Reads an escape that means a set, such as \h or \p{Han}, at the offset `at`, and moves `at` to the end of it.
  // Returns false, and does not move, if the escape there is of another kind.
  bool read_set(std::string_view expression, std::size_t& at, bool in_class, CharacterSet& set) const;
  // Reads the escape of one character that PCRE2 reads differently (\v, \u4e00, \xc3\xa4) and returns its text. Returns
  // an empty text, and does not move, for other escapes.
  std::string read_character(std::string_view expression, std::size_t& at) const;
  // Reads the class that begins at `at`; with `ignore_case`, letters of one case mean those of each. Throws Error{data}
  // if it does not end, or if it nests too deep.
  std::string read_class(std::string_view expression, std::size_t& at, bool ignore_case) const;

 private:
  // A class as a set; if it has no set, an expression that matches one of its characters.
  struct ClassText {
    CharacterSet set;
    std::string expression;
  };
  // One character in a class, as PCRE2 writes it.
  struct ClassCharacter {
    std::string text;
    bool raw = false;  // a byte such as \xff that is no whole character
  };

  ClassText read_nested(std::string_view expression, std::size_t& at, bool ignore_case, int level) const;
  std::string read_range(std::string_view expression, std::size_t& at, bool negated) const;
  ClassCharacter class_character(std::string_view expression, std::size_t& at) const;
  bool range_follows(std::string_view expression, std::size_t at) const;
  CharacterSet property(std::string name, bool negated) const;
  bool read_posix(std::string_view expression, std::size_t& at, CharacterSet& set) const;
  bool named_set(const std::string& name, CharacterSet& set) const;

  std::function<bool(const std::string&)> compiles_;
  std::string alphabetic_, word_;
};

}  // namespace trainctl
