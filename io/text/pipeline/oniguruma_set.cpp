// Translates sets of characters that have names: properties such as \p{Han}, POSIX classes, and \h, \w and \s.
#include "io/text/pipeline/oniguruma_class.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"

namespace trainctl {
namespace {

constexpr const char* space_items =
    R"(\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr const char* not_space_items =
    R"(\x{00}-\x{08}\x{0e}-\x{1f}!-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027})"
    R"(\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff})";
constexpr const char* hexadecimal_items = "0-9A-Fa-f";
constexpr const char* not_hexadecimal_items = R"(\x{00}-\/\:-\@G-\`g-\x{10ffff})";

constexpr std::array<std::pair<const char*, const char*>, 38> categories = {{
    {"letter", "L"},
    {"casedletter", "L&"},
    {"uppercaseletter", "Lu"},
    {"lowercaseletter", "Ll"},
    {"titlecaseletter", "Lt"},
    {"modifierletter", "Lm"},
    {"otherletter", "Lo"},
    {"mark", "M"},
    {"combiningmark", "M"},
    {"nonspacingmark", "Mn"},
    {"spacingmark", "Mc"},
    {"enclosingmark", "Me"},
    {"number", "N"},
    {"decimalnumber", "Nd"},
    {"letternumber", "Nl"},
    {"othernumber", "No"},
    {"punctuation", "P"},
    {"connectorpunctuation", "Pc"},
    {"dashpunctuation", "Pd"},
    {"openpunctuation", "Ps"},
    {"closepunctuation", "Pe"},
    {"initialpunctuation", "Pi"},
    {"finalpunctuation", "Pf"},
    {"otherpunctuation", "Po"},
    {"symbol", "S"},
    {"mathsymbol", "Sm"},
    {"currencysymbol", "Sc"},
    {"modifiersymbol", "Sk"},
    {"othersymbol", "So"},
    {"separator", "Z"},
    {"spaceseparator", "Zs"},
    {"lineseparator", "Zl"},
    {"paragraphseparator", "Zp"},
    {"other", "C"},
    {"control", "Cc"},
    {"format", "Cf"},
    {"privateuse", "Co"},
    {"unassigned", "Cn"},
}};

std::string property_items(const std::string& name) { return "\\p{" + name + "}"; }

// The name without what names of properties may be written with: spaces, underscores, hyphens and upper case.
std::string plain_name(const std::string& name) {
  std::string plain;
  for (const char c : name) {
    if (c != ' ' && c != '_' && c != '-') plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return plain;
}

}  // namespace

std::string CharacterSet::text() const {
  if (items.empty()) return negated ? "(?s:.)" : R"([^\x{00}-\x{10ffff}])";
  return (negated ? "[^" : "[") + items + "]";
}

bool CharacterSet::list() {
  if (!negated) return true;
  if (items.empty()) {
    items = R"(\x{00}-\x{10ffff})";
  } else if (items == space_items) {
    items = not_space_items;
  } else if (items == hexadecimal_items) {
    items = not_hexadecimal_items;
  } else if (items.starts_with("\\p{") && items.find('}') + 1 == items.size()) {
    items[1] = 'P';
  } else {
    return false;
  }
  negated = false;
  return true;
}

[[noreturn]] void throw_untranslated(std::string_view expression, const std::string& what) {
  throw Error(ErrorKind::data, format("the regular expression '{}' {}", expression.substr(0, 200), what),
              "use a tokenizer file with another pattern");
}

void CharacterSet::add_cases() {
  const bool category = items == R"(\p{Lu})" || items == R"(\p{Ll})" || items == R"(\p{Lt})";
  if (!category && items != R"(\p{Uppercase})" && items != R"(\p{Lowercase})") return;
  // The other cases of what a negated set has are what it leaves out.
  items = negated ? "" : category ? R"(\p{Lu}\p{Ll}\p{Lt})" : R"(\p{Uppercase}\p{Lowercase}\p{Lt})";
}

ClassTranslator::ClassTranslator(std::function<bool(const std::string&)> compiles) : compiles_(std::move(compiles)) {
  alphabetic_ = compiles_(R"(\p{Alphabetic})") ? R"(\p{Alphabetic})" : R"(\p{L}\p{Nl})";
  word_ = alphabetic_ + R"(\p{M}\p{Nd}\p{Pc})";
}

// POSIX' classes, which are properties as well.
bool ClassTranslator::named_set(const std::string& name, CharacterSet& set) const {
  const std::pair<const char*, CharacterSet> names[] = {
      {"alpha", {alphabetic_}},
      {"alnum", {alphabetic_ + R"(\p{Nd})"}},
      {"digit", {R"(\p{Nd})"}},
      {"upper", {compiles_(R"(\p{Uppercase})") ? R"(\p{Uppercase})" : R"(\p{Lu})"}},
      {"lower", {compiles_(R"(\p{Lowercase})") ? R"(\p{Lowercase})" : R"(\p{Ll})"}},
      {"space", {space_items}},
      {"blank", {R"(\t\p{Zs})"}},
      {"cntrl", {R"(\p{Cc})"}},
      {"xdigit", {hexadecimal_items}},
      {"word", {word_}},
      {"graph", {std::string(space_items) + R"(\p{Cc}\p{Cn}\p{Cs})", true}},
      {"print", {R"(\t-\r\x{85}\x{2028}\x{2029}\p{Cc}\p{Cn}\p{Cs})", true}},
      {"ascii", {R"(\x{00}-\x{7f})"}},
  };
  for (const auto& [known, known_set] : names) {
    if (name == known) return set = known_set, true;
  }
  return false;
}

CharacterSet ClassTranslator::property(std::string name, bool negated) const {
  if (name.starts_with('^')) {
    name.erase(0, 1);
    negated = !negated;
  }
  CharacterSet set;
  const std::string plain = plain_name(name);
  if (named_set(plain, set)) return {set.items, set.negated != negated};
  const auto category =
      std::find_if(categories.begin(), categories.end(), [&plain](const auto& one) { return plain == one.first; });
  if (category != categories.end()) {
    name = category->second;
  } else if (plain == "punct") {
    name = "P";
  } else if (plain.size() > 2 && compiles_(property_items("sc:" + name))) {
    name = "sc:" + name;  // the characters of the script alone, not those that several scripts share
  }
  return {property_items(name), negated};
}

bool ClassTranslator::read_set(std::string_view expression, std::size_t& at, bool in_class, CharacterSet& set) const {
  if (at + 1 >= expression.size() || expression[at] != '\\') return false;
  const char letter = expression[at + 1];
  const bool negated = letter == 'H' || letter == 'W' || letter == 'S' || letter == 'P' || letter == 'D';
  if (letter == 'h' || letter == 'H') {
    set = {hexadecimal_items, negated};
  } else if (letter == 'w' || letter == 'W') {
    set = {in_class ? word_ : word_ + R"(\xb2\xb3\xb9\xbc-\xbe)", negated};
  } else if (in_class && (letter == 'd' || letter == 'D')) {
    set = {R"(\p{Nd})", negated};
  } else if (letter == 's' || letter == 'S') {
    set = {space_items, negated};
  } else if ((letter == 'p' || letter == 'P') && expression.substr(at + 2).starts_with('{')) {
    const std::size_t end = expression.find('}', at);
    if (end == std::string_view::npos) throw_untranslated(expression, "has a property without an end");
    set = property(std::string(expression.substr(at + 3, end - at - 3)), negated);
    at = end + 1;
    return true;
  } else {
    return false;
  }
  at += 2;
  return true;
}

// Reads a class of POSIX such as [:alpha:] or [:^alpha:]; false if there is none.
bool ClassTranslator::read_posix(std::string_view expression, std::size_t& at, CharacterSet& set) const {
  const std::string_view rest = expression.substr(at);
  constexpr std::size_t longest = 30;  // no name is longer; without a limit, many brackets would take quadratic time
  const std::size_t end = rest.starts_with("[:") ? rest.substr(0, longest).find(":]") : std::string_view::npos;
  if (end == std::string_view::npos) return false;
  const bool inverted = rest.starts_with("[:^");
  const std::size_t begin = inverted ? 3 : 2;
  const std::string name(end < begin ? "" : rest.substr(begin, end - begin));
  if (name == "punct") {
    set = {R"(\p{P}\p{S})"};
  } else if (!named_set(name, set)) {
    return false;
  }
  set.negated = set.negated != inverted;
  at += end + 2;
  return true;
}

}  // namespace trainctl
