// Reads an expression from left to right, and remembers where the last atom begins, for counts that are repeated.
#include "io/text/pipeline/oniguruma.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "core/base/format.h"
#include "io/text/pipeline/oniguruma_class.h"

namespace trainctl {
namespace {

constexpr std::size_t most_bytes = 100'000;  // of an expression; PCRE2 compiles to at most 64 KiB
constexpr std::size_t most_open = 200;       // groups in groups; PCRE2 takes 250
constexpr int most_repeated = 1000;          // counts that are repeated, each of which moves the text after it

class Translator {
 public:
  Translator(std::string_view expression, const std::function<bool(const std::string&)>& compiles)
      : in_(expression), classes_(compiles) {}

  std::string translate() {
    if (in_.size() > most_bytes) throw_untranslated(in_, format("has more than {} bytes", most_bytes));
    groups_.emplace_back();
    while (at_ < in_.size()) {
      switch (in_[at_]) {
        case '\\':
          escape();
          break;
        case '[':
          add_atom(classes_.read_class(in_, at_, groups_.back().ignore_case));
          break;
        case '(':
          open();
          break;
        case ')':
          close();
          break;
        case '{':
          count();
          break;
        case '*':
        case '+':
        case '?':
          quantifier();
          break;
        default:
          character();
      }
    }
    out_.append(groups_.front().options, ')');
    return std::move(out_);
  }

 private:
  struct Group {
    std::size_t begin = 0;    // in `out_`
    std::size_t options = 0;  // the groups that options such as (?i) have opened inside
    bool ignore_case = false;
    bool extended = false;  // white space and comments are left out: the option x
  };

  void add_atom(const std::string& text) {
    atom_ = out_.size();
    quantified_ = false;
    out_ += text;
  }

  void character() {
    const char c = in_[at_];
    if (groups_.back().extended && (std::string_view(" \t\n\r\f").find(c) != std::string_view::npos || c == '#')) {
      at_ = c == '#' ? std::min(in_.size(), in_.find('\n', at_)) : at_ + 1;
      return left_out();
    }
    ++at_;
    if ((static_cast<unsigned char>(c) & 0xc0) == 0x80) {  // a further byte of a character
      out_ += c;
    } else {
      add_atom({c});
    }
  }

  // White space and comments that are left out separate the text before them from the text after them: `\1 2` is not
  // `\12`, and `( ?:` is not `(?:`.
  void left_out() {
    if (at_ >= in_.size()) return;
    if (std::isxdigit(static_cast<unsigned char>(in_[at_])) != 0 || out_.size() == opened_) out_ += "(?:)";
  }

  void escape() {
    CharacterSet set;
    if (classes_.read_set(in_, at_, false, set)) return add_atom(set.text());
    const std::string_view rest = in_.substr(at_);
    const std::string word = "[" + classes_.word() + R"(\xb2\xb3\xb9\xbc-\xbe])";
    if (rest.starts_with("\\b") || rest.starts_with("\\B")) {
      const std::string behind = "(?<=" + word + ")", not_behind = "(?<!" + word + ")", ahead = "(?=" + word + ")",
                        not_ahead = "(?!" + word + ")";
      at_ += 2;
      return add_atom(rest[1] == 'b' ? "(?:" + behind + not_ahead + "|" + not_behind + ahead + ")"
                                     : "(?:" + behind + ahead + "|" + not_behind + not_ahead + ")");
    }
    if (rest.starts_with("\\O")) {
      at_ += 2;
      return add_atom("(?s:.)");
    }
    if (const std::string one = classes_.read_character(in_, at_); !one.empty()) return add_atom(one);
    std::size_t length = std::min<std::size_t>(2, rest.size());
    if (rest.size() > 2 && std::string_view("xogk").find(rest[1]) != std::string_view::npos) {
      // Codes and names in brackets belong to the atom: \x{e9}, \k<name>.
      const std::size_t end = rest[2] == '{'   ? rest.find('}')
                              : rest[2] == '<' ? rest.find('>')
                                               : std::string_view::npos;
      if (end != std::string_view::npos) length = end + 1;
    }
    add_atom(std::string(rest.substr(0, length)));
    at_ += length;
  }

  // Options such as (?m:...) and (?i); Ruby's m lets the dot match line feeds.
  bool options() {
    std::size_t end = at_ + 2;
    bool off = false, ignore_case = groups_.back().ignore_case, extended = groups_.back().extended;
    std::string letters[2];  // on and off
    for (; end < in_.size() && std::string_view("-imx").find(in_[end]) != std::string_view::npos; ++end) {
      if (in_[end] == '-') {
        off = true;
      } else if (in_[end] == 'x') {
        extended = !off;
      } else {
        if (in_[end] == 'i') ignore_case = !off;
        letters[off ? 1 : 0] += in_[end] == 'm' ? 's' : 'i';
      }
    }
    if (end == at_ + 2 || end >= in_.size() || (in_[end] != ':' && in_[end] != ')')) return false;
    // (?i) holds up to the end of the group around it, alternatives included.
    if (in_[end] == ')') {
      count_open(++groups_.back().options + groups_.size());
    } else {
      push();
    }
    groups_.back().ignore_case = ignore_case;
    groups_.back().extended = extended;
    out_ += "(?" + letters[0] + (letters[1].empty() ? "" : "-" + letters[1]) + ":";
    opened_ = out_.size();
    at_ = end + 1;
    return true;
  }

  void count_open(std::size_t open) const {
    if (open > most_open) throw_untranslated(in_, format("has groups in groups, more than {}", most_open));
  }

  // Opens a group with the options of the one around it.
  void push() {
    groups_.push_back({out_.size(), 0, groups_.back().ignore_case, groups_.back().extended});
    count_open(groups_.size());
  }

  void open() {
    const std::string_view rest = in_.substr(at_);
    if (rest.starts_with("(?#")) {
      at_ = std::min(in_.size(), in_.find(')', at_));
      at_ += at_ < in_.size() ? 1 : 0;
      return left_out();
    }
    if (rest.starts_with("(*")) throw_untranslated(in_, format("has a callout at byte {}", at_));
    if (rest.starts_with("(?") && options()) return;
    push();
    // The characters of the opening bracket are no atoms: (?:, (?=, (?<!, (?<name>.
    std::size_t length = 1;
    if (rest.starts_with("(?<=") || rest.starts_with("(?<!")) {
      length = 4;
    } else if (rest.starts_with("(?<")) {
      length = std::min(rest.size() - 1, rest.find('>')) + 1;
    } else if (rest.starts_with("(?")) {
      length = std::min<std::size_t>(3, rest.size());
    }
    out_ += rest.substr(0, length);
    opened_ = out_.size();
    at_ += length;
  }

  void close() {
    const Group group = groups_.back();
    if (groups_.size() > 1) {
      groups_.pop_back();
      out_.append(group.options, ')');
    }
    atom_ = group.begin;
    quantified_ = false;
    out_ += ')';
    ++at_;
  }

  // Adds a quantifier to the last atom. If the atom has one, both become an atom: a{2}* is (?:a{2})*.
  void repeat(const std::string& text) {
    const bool greedy = last_ == "*" || last_ == "+" || last_ == "?";
    if (quantified_ && greedy && text == "*") {  // (?:a*)* would take exponential time
      out_.back() = '*';
      last_ = text;
      return;
    }
    if (quantified_) {
      if (++repeated_ > most_repeated) throw_untranslated(in_, format("repeats more than {} counts", most_repeated));
      out_.insert(atom_, "(?:").append(")");
    }
    out_ += text;
    last_ = text;
    quantified_ = true;
  }

  // Reads *, + or ?. A question mark after it makes it lazy, and a plus sign makes it possessive.
  void quantifier() {
    std::string text(1, in_[at_++]);
    if (at_ < in_.size() && (in_[at_] == '?' || in_[at_] == '+')) text += in_[at_++];
    repeat(text);
  }

  std::string read_digits(std::size_t& at) const {
    const std::size_t begin = at;
    while (at < in_.size() && std::isdigit(static_cast<unsigned char>(in_[at])) != 0) ++at;
    return std::string(in_.substr(begin, at - begin));
  }

  // A count such as {2}, {1,3} or {,3}; without digits, the bracket is a character.
  void count() {
    std::size_t end = at_ + 1;
    std::string low = read_digits(end), high;
    const bool comma = end < in_.size() && in_[end] == ',';
    if (comma) high = read_digits(++end);
    if (end >= in_.size() || in_[end] != '}' || (low.empty() && high.empty())) {
      add_atom("\\{");
      ++at_;
      return;
    }
    at_ = end + 1;
    if (low.empty()) low = "0";
    constexpr std::size_t most_digits = 6;  // PCRE2 refuses larger numbers
    const bool swapped =
        !high.empty() && std::max(low.size(), high.size()) <= most_digits && std::stoi(low) > std::stoi(high);
    // A question mark makes {1,2} lazy, but repeats {2}, and {2,1}, which is {1,2} and possessive. A plus sign repeats
    // a count, unlike in PCRE2.
    const bool lazy = comma && !swapped && at_ < in_.size() && in_[at_] == '?';
    if (swapped) low.swap(high);
    if (lazy) ++at_;
    repeat("{" + low + (comma ? "," + high : "") + "}" + (lazy ? "?" : swapped ? "+" : ""));
  }

  std::string_view in_;
  ClassTranslator classes_;
  std::size_t at_ = 0;
  std::string out_;
  std::size_t atom_ = 0;     // where the last atom begins in `out_`
  bool quantified_ = false;  // whether it has a quantifier
  std::string last_;         // the last quantifier
  int repeated_ = 0;
  std::size_t opened_ = std::string::npos;  // the end of the last opening bracket in `out_`
  std::vector<Group> groups_;
};

}  // namespace

std::string pcre_of(std::string_view expression, const std::function<bool(const std::string&)>& compiles) {
  return Translator(expression, compiles).translate();
}

}  // namespace trainctl
