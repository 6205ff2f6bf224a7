// Translates regular expressions from the syntax that `tokenizers` reads, which is that of Oniguruma for Ruby.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace trainctl {

// Returns the expression in PCRE2's syntax with the same matches. What the two read differently is rewritten: \h (a
// hexadecimal digit), \w, \b and \s, names of scripts, sets in classes (`[a-z&&[^aeiou]]`), the option (?m), and
// repeated counts (`\d{1,3}+`). `compiles` tells whether PCRE2 takes an expression, since names of properties depend on
// its version. Throws Error{data} for an expression that has no translation, or that is longer or nests deeper than any
// that is used. What neither can read stays as it is.
std::string pcre_of(std::string_view expression, const std::function<bool(const std::string&)>& compiles);

}  // namespace trainctl
