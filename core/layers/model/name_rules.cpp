// Parses and applies the rules for names.
#include "core/layers/model/name_rules.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/spec/units.h"

namespace trainctl {
namespace {

constexpr std::size_t max_digits = 9;

[[noreturn]] void wrong(const std::string& what) { throw Error(ErrorKind::config, what); }

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// Reads the number that begins at `at`, and moves `at` past it. Returns no value if there is no number of at most
// max_digits digits.
std::optional<std::int64_t> number_at(const std::string& text, std::size_t& at) {
  std::size_t end = at;
  while (end < text.size() && is_digit(text[end])) ++end;
  if (end == at || end - at > max_digits) return std::nullopt;
  const std::int64_t number = *parse_integer(text.substr(at, end - at));
  at = end;
  return number;
}

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

}  // namespace

std::vector<NameRule::Piece> NameRule::pieces_of(const std::string& text, bool computes) {
  std::vector<Piece> pieces;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] != '{') {
      const std::size_t end = std::min(text.find('{', at), text.size());
      pieces.push_back({text.substr(at, end - at)});
      at = end;
      continue;
    }
    const std::size_t end = text.find('}', at);
    const std::string inside = end == std::string::npos ? "" : text.substr(at + 1, end - at - 1);
    Piece piece{"", true};
    std::size_t in = 0;
    if (computes) piece.factor = number_at(inside, in).value_or(1);
    while (in < inside.size() && std::isalpha(static_cast<unsigned char>(inside[in])) != 0) piece.text += inside[in++];
    if (computes && in < inside.size() && (inside[in] == '+' || inside[in] == '-')) {
      const std::int64_t sign = inside[in++] == '+' ? 1 : -1;
      piece.offset = sign * number_at(inside, in).value_or(0);
    }
    if (piece.text.empty() || in != inside.size()) {
      wrong(format("'{}' is not a number of a rule such as {}", text.substr(at, end - at + (end != std::string::npos)),
                   computes ? "{n}, {n+1} or {2n-2}" : "{n}"));
    }
    pieces.push_back(piece);
    at = end + 1;
  }
  return pieces;
}

NameRule::NameRule(const std::string& text) {
  const std::size_t arrow = text.find("->");
  if (arrow == std::string::npos) wrong(format("'{}' is not a rule such as `conv{{n}} -> features.{{n}}`", text));
  std::string from = trimmed(text.substr(0, arrow));
  if (from.starts_with('^')) {
    begins_ = true;
    from.erase(0, 1);
  }
  if (from.ends_with('$')) {
    ends_ = true;
    from.pop_back();
  }
  if (from.empty() && !begins_ && !ends_) wrong(format("'{}': there is no text before the arrow", text));
  from_ = pieces_of(from, false);
  to_ = pieces_of(trimmed(text.substr(arrow + 2)), true);
  for (const Piece& piece : to_) {
    const auto same = [&piece](const Piece& other) { return other.number && other.text == piece.text; };
    if (piece.number && std::none_of(from_.begin(), from_.end(), same)) {
      wrong(format("'{}': {{{}}} does not occur before the arrow", text, piece.text));
    }
  }
}

std::string NameRule::apply(const std::string& name) const {
  for (std::size_t begin = 0; begin <= name.size() && (begin == 0 || !begins_); ++begin) {
    std::size_t at = begin;
    std::map<std::string, std::int64_t> numbers;
    const bool fits = std::all_of(from_.begin(), from_.end(), [&](const Piece& piece) {
      if (!piece.number) {
        const bool same = name.compare(at, piece.text.size(), piece.text) == 0;
        at += piece.text.size();
        return same;
      }
      const std::optional<std::int64_t> number = number_at(name, at);
      return number && numbers.emplace(piece.text, *number).first->second == *number;
    });
    if (!fits || (ends_ && at != name.size())) continue;
    std::string result = name.substr(0, begin);
    for (const Piece& piece : to_) {
      result += piece.number ? std::to_string(piece.factor * numbers[piece.text] + piece.offset) : piece.text;
    }
    return result + name.substr(at);
  }
  return name;
}

std::string renamed(std::string name, const std::vector<NameRule>& rules) {
  for (const NameRule& rule : rules) name = rule.apply(name);
  return name;
}

}  // namespace trainctl
