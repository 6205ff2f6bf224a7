// Translates classes and properties. A class without sets in it stays a class; others become alternatives and
// lookaheads, each of which matches one character.
#include "io/text/pipeline/oniguruma_class.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/utf8.h"

namespace trainctl {
namespace {

constexpr const char* space_items =
    R"(\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr const char* hexadecimal_items = "0-9A-Fa-f";
constexpr int most_levels = 20;

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

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool is_hexadecimal(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }

std::string property_items(const std::string& name) { return "\\p{" + name + "}"; }

// The name without what names of properties may be written with: spaces, underscores, hyphens and upper case.
std::string plain_name(const std::string& name) {
  std::string plain;
  for (const char c : name) {
    if (c != ' ' && c != '_' && c != '-') plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return plain;
}

[[noreturn]] void throw_untranslated(std::string_view expression, const std::string& what) {
  throw Error(ErrorKind::data, format("the regular expression '{}' {}", expression.substr(0, 200), what),
              "use a tokenizer file with another pattern");
}

// One operand of `&&` in a class: the items of a class of PCRE2, and expressions that match one character each.
struct Union {
  std::string items;
  std::vector<std::string> others;

  std::string text() const {
    if (others.empty()) return items.empty() ? "(?!)" : "[" + items + "]";
    std::string all = "(?:" + (items.empty() ? "" : "[" + items + "]");
    for (const std::string& other : others) all += (all.size() > 3 ? "|" : "") + other;
    return all + ")";
  }
};

}  // namespace

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
  const bool negated = letter == 'H' || letter == 'W' || letter == 'S' || letter == 'P';
  if (letter == 'h' || letter == 'H') {
    set = {hexadecimal_items, negated};
  } else if (letter == 'w' || letter == 'W') {
    set = {in_class ? word_ : word_ + R"(\xb2\xb3\xb9\xbc-\xbe)", negated};
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

std::string ClassTranslator::read_character(std::string_view expression, std::size_t& at) const {
  const std::string_view rest = expression.substr(at);
  const auto digits = [&](std::size_t from, std::size_t most) {
    std::size_t count = 0;
    while (count < most && from + count < rest.size() && is_hexadecimal(rest[from + count])) ++count;
    return count;
  };
  if (rest.size() < 2) return "";
  if (rest[1] == 'v') return at += 2, R"(\x0b)";
  if (rest[1] == 'u' && digits(2, 4) == 4) {
    at += 6;
    return "\\x{" + std::string(rest.substr(2, 4)) + "}";
  }
  if (rest[1] == 'x' && digits(2, 2) == 2 && rest[2] >= '8') {  // a byte of a character
    at += 4;
    return {static_cast<char>(std::stoi(std::string(rest.substr(2, 2)), nullptr, 16))};
  }
  constexpr std::string_view known = "aefnrtdDRXNKAzZGkgbcxo";
  if (rest[1] == 'y' || rest[1] == 'Y') throw_untranslated(expression, "has \\y, a border of a grapheme");
  if (is_letter(rest[1]) && known.find(rest[1]) == std::string_view::npos) {  // Oniguruma reads the letter itself
    at += 2;
    return {rest[1]};
  }
  return "";
}

namespace {

// What a class has read so far.
struct ClassParts {
  std::vector<Union> operands = std::vector<Union>(1);  // of `&&`

  std::string& items() { return operands.back().items; }
  void add(const CharacterSet& set) {
    if (set.negated) {
      operands.back().others.push_back(set.text());
    } else {
      items() += set.items;
    }
  }
  bool ends_with_hyphen() { return items().ends_with('-') && !items().ends_with("\\-"); }
  // A hyphen before or after a set is no range.
  void end_range() {
    if (ends_with_hyphen()) items().insert(items().size() - 1, 1, '\\');
  }
  std::string text(bool negated) const {
    if (operands.size() == 1 && operands[0].others.empty()) return CharacterSet{operands[0].items, negated}.text();
    std::string all;
    for (std::size_t i = 0; i + 1 < operands.size(); ++i) all += "(?=" + operands[i].text() + ")";
    all += operands.back().text();
    return negated ? "(?:(?!" + all + ")(?s:.))" : "(?:" + all + ")";
  }
};

}  // namespace

// Reads a class of POSIX such as [:alpha:] or [:^alpha:]; false if there is none.
bool ClassTranslator::read_posix(std::string_view expression, std::size_t& at, CharacterSet& set) const {
  const std::string_view rest = expression.substr(at);
  const std::size_t end = rest.starts_with("[:") ? rest.find(":]") : std::string_view::npos;
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

std::string ClassTranslator::read_class(std::string_view expression, std::size_t& at, int level) const {
  if (level > most_levels) throw_untranslated(expression, format("has classes in classes, more than {}", most_levels));
  const std::size_t begin = at++;
  const bool negated = at < expression.size() && expression[at] == '^' && ++at > 0;
  ClassParts parts;
  CharacterSet set;
  for (bool first = true; at < expression.size(); first = false) {
    const std::string_view rest = expression.substr(at);
    if (rest[0] == ']' && !first) return ++at, parts.text(negated);
    if (rest.starts_with("&&")) {
      parts.operands.emplace_back();
      at += 2;
    } else if (read_posix(expression, at, set)) {
      parts.end_range();
      parts.add(set);
    } else if (rest[0] == '[') {
      if (parts.ends_with_hyphen())
        throw_untranslated(expression, format("has a hyphen before a class at byte {}", at));
      parts.operands.back().others.push_back(read_class(expression, at, level + 1));
    } else if (read_set(expression, at, true, set)) {
      parts.end_range();
      parts.add(set);
      if (expression.substr(at).starts_with('-')) parts.items() += "\\-", ++at;
    } else if (rest[0] == '\\') {
      if (const std::string character = read_character(expression, at); !character.empty()) {
        parts.items() += character;
      } else {
        parts.items() += rest.substr(0, 2);
        at += std::min<std::size_t>(2, rest.size());
      }
    } else {
      parts.items() += rest[0] == ']' ? "\\]" : std::string(rest.substr(0, 1));
      ++at;
    }
  }
  throw_untranslated(expression, format("has a class without an end at byte {}", begin));
}

}  // namespace trainctl
