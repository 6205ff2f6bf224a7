// Translates classes. A class stays a class where PCRE2 can write it as one, and becomes alternatives and lookaheads,
// each of which matches one character, where it cannot. Each character of a class is written so that it has no other
// meaning, wherever it stands.
#include "io/text/pipeline/oniguruma_class.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "core/base/format.h"
#include "core/base/utf8.h"

namespace trainctl {
namespace {

constexpr int most_levels = 20;

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool is_hexadecimal(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }

// How many of at most `most` characters from `from` on are digits of a base.
std::size_t digits(std::string_view text, std::size_t from, std::size_t most, bool octal = false) {
  std::size_t count = 0;
  while (count < most && from + count < text.size() && is_hexadecimal(text[from + count]) &&
         (!octal || (text[from + count] >= '0' && text[from + count] <= '7'))) {
    ++count;
  }
  return count;
}

// The bytes of escapes such as \xe4\xb8\x80, at most four, with which a text begins. Those below \x80 are characters.
std::string raw_bytes(std::string_view text) {
  std::string bytes;
  while (bytes.size() < 4 && text.starts_with("\\x") && digits(text, 2, 2) == 2 && text[2] >= '8') {
    bytes += static_cast<char>(std::stoi(std::string(text.substr(2, 2)), nullptr, 16));
    text.remove_prefix(4);
  }
  return bytes;
}

// One operand of `&&` in a class: items of a class, and expressions that match one character each.
struct Union {
  std::string items;
  std::vector<std::string> others;

  void add(CharacterSet set) {
    if (set.list()) {
      items += set.items;
    } else {
      others.push_back(set.text());
    }
  }
  std::string text() const {
    if (others.empty()) return CharacterSet{items, false}.text();
    // Atomic: what several of them match is tried once, or the steps would double with each character.
    std::string all = "(?>" + (items.empty() ? "" : "[" + items + "]");
    for (const std::string& other : others) all += (all.size() > 3 ? "|" : "") + other;
    return all + ")";
  }
};

// An expression that matches one character that is in all of the operands.
std::string intersection(const std::vector<Union>& operands, bool negated) {
  std::string all;
  for (std::size_t i = 0; i + 1 < operands.size(); ++i) all += "(?=" + operands[i].text() + ")";
  all += operands.back().text();
  return negated ? "(?:(?!" + all + ")(?s:.))" : "(?:" + all + ")";
}

}  // namespace

std::string ClassTranslator::read_character(std::string_view expression, std::size_t& at) const {
  const std::string_view rest = expression.substr(at);
  if (rest.size() < 2) return "";
  if (rest[1] == 'v') return at += 2, R"(\x0b)";
  if (rest[1] == 'u' && digits(rest, 2, 4) == 4) {
    at += 6;
    return "\\x{" + std::string(rest.substr(2, 4)) + "}";
  }
  if (const std::string bytes = raw_bytes(rest); !bytes.empty()) {
    const std::size_t length = utf8_length(bytes);
    at += 4 * std::max<std::size_t>(1, length);
    return length > 0 ? bytes.substr(0, length) : CharacterSet{}.text();  // no text has a part of a character
  }
  constexpr std::string_view known = "aefnrtdDRXNKAzZGkgbcxo";
  if (rest[1] == 'y' || rest[1] == 'Y') throw_untranslated(expression, "has \\y, a border of a grapheme");
  if (is_letter(rest[1]) && known.find(rest[1]) == std::string_view::npos) {  // Oniguruma reads the letter itself
    at += 2;
    return {rest[1]};
  }
  return "";
}

ClassTranslator::ClassCharacter ClassTranslator::class_character(std::string_view expression, std::size_t& at) const {
  std::string_view rest = expression.substr(at);
  const auto take = [&](std::size_t length) {
    length = std::min(length, rest.size());
    at += length;
    return ClassCharacter{std::string(rest.substr(0, length)), false};
  };
  if (rest[0] == '\\' && rest.size() > 1) {
    const std::string bytes = raw_bytes(rest);
    if (!bytes.empty() && utf8_length(bytes) == 0) return at += 4, ClassCharacter{std::string(rest.substr(0, 4)), true};
    constexpr std::string_view controls = "aefnrtb";
    if (rest.starts_with("\\x{")) return take(std::min(rest.find('}'), rest.size()) + 1);
    if (rest[1] == 'x' && bytes.empty()) return take(2 + digits(rest, 2, 2));
    if (rest[1] == 'c') return take(3);
    if (controls.find(rest[1]) != std::string_view::npos) return take(2);
    if (const std::size_t octal = digits(rest, 1, 3, true); octal > 0) return take(1 + octal);
    if (rest[1] == 'v' || rest[1] == 'u' || rest[1] == 'x') {
      if (std::string text = read_character(expression, at); !text.empty()) return {std::move(text), false};
    }
    rest.remove_prefix(1);  // the character itself
    ++at;
  }
  const auto byte = static_cast<unsigned char>(rest[0]);
  if (byte >= 0x80) return take(std::max<std::size_t>(1, utf8_length(rest)));
  ++at;
  return {(std::isalnum(byte) != 0 ? "" : "\\") + std::string(1, rest[0]), false};
}

// Whether the hyphen at `at` is between two characters of a range. Otherwise it is a character.
bool ClassTranslator::range_follows(std::string_view expression, std::size_t at) const {
  const std::string_view rest = expression.substr(at);
  if (rest.size() < 2 || rest[0] != '-' || rest[1] == ']' || rest.starts_with("-&&")) return false;
  CharacterSet set;
  std::size_t behind = at + 1;
  if (read_posix(expression, behind, set) || read_set(expression, behind, true, set)) return false;
  if (rest[1] == '[') throw_untranslated(expression, format("has a hyphen before a class at byte {}", at + 1));
  return true;
}

// Reads a character or a range. Bytes that are no whole character match nothing, and end a range at \x7f. A negated
// class with a range up to \xff leaves out all that begins with these bytes.
std::string ClassTranslator::read_range(std::string_view expression, std::size_t& at, bool negated) const {
  const ClassCharacter low = class_character(expression, at);
  if (!range_follows(expression, at)) return low.raw && !negated ? "" : low.text;
  ++at;
  const ClassCharacter high = class_character(expression, at);
  if (low.raw && high.raw && !negated) return "";
  if (!high.raw) return low.text + "-" + high.text;
  return low.text + "-" + (!negated ? R"(\x7f)" : high.text == R"(\xff)" ? R"(\x{10ffff})" : high.text);
}

ClassTranslator::ClassText ClassTranslator::read_nested(std::string_view expression, std::size_t& at, bool ignore_case,
                                                        int level) const {
  if (level > most_levels) throw_untranslated(expression, format("has classes in classes, more than {}", most_levels));
  const std::size_t begin = at++;
  const bool negated = at < expression.size() && expression[at] == '^' && ++at > 0;
  std::vector<Union> operands(1);
  CharacterSet set;
  for (bool first = true; at < expression.size(); first = false) {
    const std::string_view rest = expression.substr(at);
    if (rest[0] == ']' && !first) {
      ++at;
      if (operands.size() == 1 && operands[0].others.empty()) return {{operands[0].items, negated}, ""};
      return {{}, intersection(operands, negated)};
    }
    if (rest.starts_with("&&")) {
      operands.emplace_back();
      at += 2;
    } else if (read_posix(expression, at, set) || read_set(expression, at, true, set)) {
      if (ignore_case) set.add_cases();
      operands.back().add(set);
      if (expression.substr(at).starts_with('-')) operands.back().items += "\\-", ++at;
    } else if (rest[0] == '[') {
      const ClassText inner = read_nested(expression, at, ignore_case, level + 1);
      inner.expression.empty() ? operands.back().add(inner.set) : operands.back().others.push_back(inner.expression);
    } else {
      operands.back().items += read_range(expression, at, negated);
    }
  }
  throw_untranslated(expression, format("has a class without an end at byte {}", begin));
}

std::string ClassTranslator::read_class(std::string_view expression, std::size_t& at, bool ignore_case) const {
  const ClassText read = read_nested(expression, at, ignore_case, 0);
  return read.expression.empty() ? read.set.text() : read.expression;
}

}  // namespace trainctl
