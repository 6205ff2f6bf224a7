// The normalizers of tokenizer.json that need no tables of their own.
#include "io/text/pipeline/normalizer.h"

#include <algorithm>
#include <utility>

#include "io/text/pipeline/regex.h"
#include "io/text/unicode/characters.h"
#include "io/text/unicode/normal_form.h"

namespace trainctl {
namespace {

// Replaces each character of a text by what `append` appends for it.
template <class Append>
void replace_characters(std::string& text, const Append& append) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Character character = first_character(std::string_view(text).substr(at));
    append(character.code, std::string_view(text).substr(at, character.length), out);
    at += character.length;
  }
  text.swap(out);
}

// The number of bytes of a match's replacement that stand for the beginning of a text, of which the first `begin` bytes
// do. In tokenizers a replacement stands for the last character that it replaces.
std::size_t begin_of_replacement(std::size_t match_end, std::size_t begin, const std::string& by) {
  return match_end <= begin ? by.size() : 0;
}

class UnicodeNormalizer final : public Normalizer {
 public:
  explicit UnicodeNormalizer(NormalForm form) : form_(form) {}
  void normalize(std::string& text) const override {
    std::string out;
    out.reserve(text.size());
    append_normal_form(text, form_, out);
    text.swap(out);
  }
  // Marks after the beginning may be joined with it.
  std::size_t begin_after(const std::string& text, std::size_t begin) const override {
    if (begin == 0) return 0;
    std::string whole, first;
    append_normal_form(text, form_, whole);
    append_normal_form(std::string_view(text).substr(0, begin), form_, first);
    if (whole.empty()) return 0;
    return whole.starts_with(first) ? first.size() : first_character(whole).length;
  }
  bool takes_any_bytes() const override { return true; }

 private:
  NormalForm form_;
};

class LowerCase final : public Normalizer {
 public:
  void normalize(std::string& text) const override {
    replace_characters(text, [](char32_t code, std::string_view, std::string& out) { append_lower_case(code, out); });
  }
};

class StripAccents final : public Normalizer {
 public:
  void normalize(std::string& text) const override {
    replace_characters(text, [](char32_t code, std::string_view bytes, std::string& out) {
      if (!is_mark_in_unicode9(code)) out += bytes;
    });
  }

 private:
  static bool is_mark_in_unicode9(char32_t code) {
    if (code == 0x1cf2 || code == 0x1cf3) return true;  // letters since Unicode 12
    return is_mark(category_of(code)) && age_of(code) != Age::later && code != 0x111c9;
  }
};

class Strip final : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  void normalize(std::string& text) const override {
    const auto [begin, end] = stripped(text);
    if (right_) text.resize(end);
    if (left_) text.erase(0, std::min(begin, text.size()));
  }
  std::size_t begin_after(const std::string& text, std::size_t begin) const override {
    const auto [first, end] = stripped(text);
    const std::size_t kept = right_ ? std::min(begin, end) : begin;
    return left_ ? kept - std::min(kept, first) : kept;
  }

 private:
  // The begin and the end of what is not white space.
  static std::pair<std::size_t, std::size_t> stripped(const std::string& text) {
    std::size_t begin = text.size(), end = 0;
    for (std::size_t at = 0; at < text.size();) {
      const Character character = first_character(std::string_view(text).substr(at));
      if (!is_white_space(character.code)) begin = std::min(begin, at), end = at + character.length;
      at += character.length;
    }
    return {begin, end};
  }

  bool left_, right_;
};

class PrependText final : public Normalizer {
 public:
  explicit PrependText(std::string text) : text_(std::move(text)) {}
  void normalize(std::string& text) const override {
    if (!text.empty()) text.insert(0, text_);
  }
  std::size_t begin_after(const std::string&, std::size_t begin) const override {
    return begin == 0 ? 0 : begin + text_.size();
  }

 private:
  std::string text_;
};

class ReplaceText final : public Normalizer {
 public:
  ReplaceText(std::string text, std::string by) : text_(std::move(text)), by_(std::move(by)) {}
  void normalize(std::string& text) const override {
    std::size_t at = text.find(text_);
    if (at == std::string::npos) return;
    std::string out;
    std::size_t done = 0;
    for (; at != std::string::npos; at = text.find(text_, done)) {
      out.append(text, done, at - done).append(by_);
      done = at + text_.size();
    }
    text = out.append(text, done);
  }
  std::size_t begin_after(const std::string& text, std::size_t begin) const override {
    std::size_t after = begin;
    for (std::size_t at = text.find(text_); at < begin; at = text.find(text_, at + text_.size())) {
      const std::size_t end = at + text_.size();
      after += begin_of_replacement(end, begin, by_) - (std::min(end, begin) - at);
    }
    return after;
  }

 private:
  std::string text_, by_;
};

class ReplaceRegex final : public Normalizer {
 public:
  ReplaceRegex(const std::string& regex, std::string by) : regex_(regex), by_(std::move(by)) {}
  void normalize(std::string& text) const override {
    std::string out;
    std::size_t done = 0;
    for (RegexMatches matches(regex_, text); matches.next(); done = matches.end()) {
      out.append(text, done, matches.begin() - done).append(by_);
    }
    text = out.append(text, done);
  }
  std::size_t begin_after(const std::string& text, std::size_t begin) const override {
    std::size_t after = begin;
    for (RegexMatches matches(regex_, text); matches.next() && (matches.begin() < begin || matches.end() == 0);) {
      const std::size_t end = matches.end();
      after += begin_of_replacement(end, begin, by_) - (std::min(end, begin) - matches.begin());
    }
    return after;
  }

 private:
  Regex regex_;
  std::string by_;
};

class Nmt final : public Normalizer {
 public:
  void normalize(std::string& text) const override {
    replace_characters(text, [](char32_t code, std::string_view bytes, std::string& out) {
      if ((code >= 1 && code <= 8) || code == 11 || (code >= 14 && code <= 31) || code == 127 || code == 0x8f ||
          code == 0x9f)
        return;
      const bool space = code == 9 || code == 10 || code == 12 || code == 13 || code == 0x1680 ||
                         (code >= 0x200b && code <= 0x200f) || code == 0x2028 || code == 0x2029 || code == 0x2581 ||
                         code == 0xfeff || code == 0xfffd;
      space ? out += ' ' : out += bytes;
    });
  }
};

class BertNormalizer final : public Normalizer {
  static bool is_separator(char32_t code) { return category_of(code) >= Category::space_separator; }
  static bool is_other_in_unicode8(char32_t code) {
    const Category category = category_in_unicode8(code);
    return category == Category::control || category == Category::format || category == Category::private_use;
  }

 public:
  explicit BertNormalizer(const BertOptions& options) : options_(options) {}
  void normalize(std::string& text) const override {
    replace_characters(text, [this](char32_t code, std::string_view bytes, std::string& out) {
      const bool space = code == '\t' || code == '\n' || code == '\r' || is_separator(code);
      if (options_.clean_text && !space && (code == 0 || code == replacement_character || is_other_in_unicode8(code)))
        return;
      if (options_.separate_cjk && is_cjk_ideograph(code)) {
        out.append(" ").append(bytes).append(" ");
      } else if (options_.clean_text && space) {
        out += ' ';
      } else {
        out += bytes;
      }
    });
    if (options_.strip_accents) {
      std::string out;
      append_normal_form(text, NormalForm::nfd, out);
      text.swap(out);
      replace_characters(text, [](char32_t code, std::string_view bytes, std::string& marked) {
        if (category_in_unicode8(code) != Category::nonspacing_mark) marked += bytes;
      });
    }
    if (options_.lower_case) LowerCase().normalize(text);
  }

 private:
  BertOptions options_;
};

}  // namespace

std::size_t Normalizer::begin_after(const std::string& text, std::size_t begin) const {
  std::string first = text.substr(0, begin);
  normalize(first);
  return first.size();
}

std::unique_ptr<Normalizer> make_unicode_normalizer(NormalForm form) {
  return std::make_unique<UnicodeNormalizer>(form);
}
std::unique_ptr<Normalizer> make_lower_case() { return std::make_unique<LowerCase>(); }
std::unique_ptr<Normalizer> make_strip_accents() { return std::make_unique<StripAccents>(); }
std::unique_ptr<Normalizer> make_strip(bool left, bool right) { return std::make_unique<Strip>(left, right); }
std::unique_ptr<Normalizer> make_prepend(std::string text) { return std::make_unique<PrependText>(std::move(text)); }
std::unique_ptr<Normalizer> make_replace(std::string text, std::string by) {
  return std::make_unique<ReplaceText>(std::move(text), std::move(by));
}
std::unique_ptr<Normalizer> make_regex_replace(const std::string& regex, std::string by) {
  return std::make_unique<ReplaceRegex>(regex, std::move(by));
}
std::unique_ptr<Normalizer> make_nmt() { return std::make_unique<Nmt>(); }
std::unique_ptr<Normalizer> make_bert_normalizer(const BertOptions& options) {
  return std::make_unique<BertNormalizer>(options);
}

}  // namespace trainctl
