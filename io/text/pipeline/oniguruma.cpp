// Reads an expression from left to right, and remembers where the last atom begins, for counts that are repeated.
#include "io/text/pipeline/oniguruma.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "io/text/pipeline/oniguruma_class.h"

namespace trainctl {
namespace {

class Translator {
 public:
  Translator(std::string_view expression, const std::function<bool(const std::string&)>& compiles)
      : in_(expression), classes_(compiles) {}

  std::string translate() {
    groups_.emplace_back();
    while (at_ < in_.size()) {
      switch (in_[at_]) {
        case '\\':
          escape();
          break;
        case '[':
          add_atom(classes_.read_class(in_, at_));
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
        default:
          character();
      }
    }
    // A comment of the option x ends with its line.
    if (groups_.front().options > 0) out_ += extended_ ? "\n" : "";
    out_.append(groups_.front().options, ')');
    return std::move(out_);
  }

 private:
  struct Group {
    std::size_t begin = 0;    // in `out_`
    std::size_t options = 0;  // the groups that options such as (?i) have opened inside
  };

  void add_atom(const std::string& text) {
    atom_ = out_.size();
    out_ += text;
  }

  void character() {
    const char c = in_[at_++];
    const bool continues = (static_cast<unsigned char>(c) & 0xc0) == 0x80;  // of a character in UTF-8
    if (c != '*' && c != '+' && c != '?' && !continues) atom_ = out_.size();
    out_ += c;
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
    if (const std::string one = classes_.read_character(in_, at_); !one.empty()) {
      const bool continues = (static_cast<unsigned char>(one[0]) & 0xc0) == 0x80;
      continues ? out_ += one : (add_atom(one), out_);
      return;
    }
    add_atom(std::string(rest.substr(0, 2)));
    at_ += std::min<std::size_t>(2, rest.size());
  }

  // Options such as (?m:...) and (?i); Ruby's m lets the dot match line feeds.
  bool options() {
    std::size_t end = at_ + 2;
    while (end < in_.size() && (in_[end] == '-' || in_[end] == 'i' || in_[end] == 'm' || in_[end] == 'x')) ++end;
    if (end == at_ + 2 || end >= in_.size() || (in_[end] != ':' && in_[end] != ')')) return false;
    std::string letters(in_.substr(at_ + 2, end - at_ - 2));
    extended_ |= letters.find('x') != std::string::npos;
    std::replace(letters.begin(), letters.end(), 'm', 's');
    // (?i) holds up to the end of the group around it, alternatives included.
    if (in_[end] == ')') {
      ++groups_.back().options;
    } else {
      groups_.push_back({out_.size(), 0});
    }
    out_ += "(?" + letters + ":";
    at_ = end + 1;
    return true;
  }

  void open() {
    const std::string_view rest = in_.substr(at_);
    if (rest.starts_with("(?#")) {
      at_ = std::min(in_.size(), in_.find(')', at_));
      at_ += at_ < in_.size() ? 1 : 0;
      return;
    }
    if (rest.starts_with("(?") && options()) return;
    groups_.push_back({out_.size(), 0});
    // The characters behind the bracket are no atoms: (?:, (?=, (?<!, (?<name>.
    std::size_t length = 1;
    if (rest.starts_with("(?<=") || rest.starts_with("(?<!")) {
      length = 4;
    } else if (rest.starts_with("(?<")) {
      length = std::min(rest.size(), rest.find('>')) + 1;
    } else if (rest.starts_with("(?")) {
      length = 3;
    }
    out_ += rest.substr(0, length);
    at_ += std::min(length, rest.size());
  }

  void close() {
    const Group group = groups_.back();
    if (groups_.size() > 1) {
      groups_.pop_back();
      out_.append(group.options, ')');
    }
    atom_ = group.begin;
    out_ += ')';
    ++at_;
  }

  // A count such as {2}, {1,3} or {,3}; without digits, the bracket is a character.
  void count() {
    std::size_t end = at_ + 1;
    std::string low, high;
    while (end < in_.size() && std::isdigit(static_cast<unsigned char>(in_[end])) != 0) low += in_[end++];
    const bool comma = end < in_.size() && in_[end] == ',';
    if (comma) ++end;
    while (comma && end < in_.size() && std::isdigit(static_cast<unsigned char>(in_[end])) != 0) high += in_[end++];
    if (end >= in_.size() || in_[end] != '}' || (low.empty() && high.empty())) {
      add_atom("\\{");
      ++at_;
      return;
    }
    out_ += "{" + (low.empty() ? "0" : low) + (comma ? "," + high : "") + "}";
    at_ = end + 1;
    // A plus sign repeats a count, unlike in PCRE2, and so does a question mark after {n}.
    const bool repeated = at_ < in_.size() && (in_[at_] == '+' || (in_[at_] == '?' && !comma));
    if (repeated) out_.insert(atom_, "(?:").append(")");
  }

  std::string_view in_;
  ClassTranslator classes_;
  std::size_t at_ = 0;
  std::string out_;
  std::size_t atom_ = 0;  // where the last atom begins in `out_`
  std::vector<Group> groups_;
  bool extended_ = false;  // an option x was read
};

}  // namespace

std::string pcre_of(std::string_view expression, const std::function<bool(const std::string&)>& compiles) {
  return Translator(expression, compiles).translate();
}

}  // namespace trainctl
