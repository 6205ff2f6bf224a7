// Compiles and searches regular expressions by PCRE2, just in time where it can.
#include "io/text/pipeline/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/utf8.h"
#include "io/text/pipeline/matched_parts.h"
#include "io/text/pipeline/oniguruma.h"
#include "io/text/unicode/characters.h"

namespace trainctl {

namespace {

// Returns null for an expression that is wrong, and its error.
pcre2_code* compile(const std::string& expression, int& error) {
  PCRE2_SIZE offset = 0;
  // As Oniguruma does for `tokenizers`: ^ and $ match at the beginning and end of each line, and lines end with \n.
  const std::unique_ptr<pcre2_compile_context, void (*)(pcre2_compile_context*)> context(
      pcre2_compile_context_create(nullptr), pcre2_compile_context_free);
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  return pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()), expression.size(),
                       PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error, &offset,
                       context.get());
}

}  // namespace

struct Regex::Code {
  pcre2_code* code = nullptr;
  ~Code() { pcre2_code_free(code); }
};

Regex::Regex(const std::string& expression) : code_(std::make_unique<Code>()), expression_(expression) {
  int error = 0;
  const auto compiles = [&error](const std::string& part) { return Code{compile(part, error)}.code != nullptr; };
  code_->code = compile(pcre_of(expression, compiles), error);
  if (code_->code == nullptr) {
    PCRE2_UCHAR text[256] = {};
    pcre2_get_error_message(error, text, std::size(text));
    throw Error(ErrorKind::data, format("the regular expression '{}' is wrong: {}", expression.substr(0, 200),
                                        reinterpret_cast<const char*>(text)));
  }
  pcre2_jit_compile(code_->code, PCRE2_JIT_COMPLETE);  // without it, matching is slower
}

Regex::~Regex() = default;

bool Regex::find(std::string_view text, std::size_t from, std::size_t& begin, std::size_t& end) const {
  struct Scratch {
    pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
    pcre2_match_context* context = pcre2_match_context_create(nullptr);
    Scratch() {
      pcre2_set_match_limit(context, 10'000'000);
      pcre2_set_heap_limit(context, 1 << 20);  // in KiB
    }
    ~Scratch() { pcre2_match_data_free(data), pcre2_match_context_free(context); }
  };
  thread_local const Scratch scratch;
  const auto match = [&](pcre2_match_data* data, std::uint32_t options) {
    return pcre2_match(code_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                       PCRE2_NO_UTF_CHECK | options, data, scratch.context);
  };
  int found = match(scratch.data, 0);
  // Compiled code has a stack of 32 KiB for what a long match may go back to. The interpreter uses the heap.
  std::unique_ptr<pcre2_match_data, void (*)(pcre2_match_data*)> large(nullptr, pcre2_match_data_free);
  if (found == PCRE2_ERROR_JIT_STACKLIMIT) {
    large.reset(pcre2_match_data_create(1, nullptr));
    found = match(large.get(), PCRE2_NO_JIT);
  }
  if (found == PCRE2_ERROR_NOMATCH) return false;
  if (found < 0) {
    throw Error(ErrorKind::data,
                format("the regular expression '{}' takes too many steps or too much memory at byte {} of a text",
                       expression_.substr(0, 200), from),
                "use a tokenizer file with another pattern, or split the text into shorter lines");
  }
  const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(large ? large.get() : scratch.data);
  begin = bounds[0], end = bounds[1];
  return end >= begin;
}

bool RegexMatches::next() {
  while (!done_) {
    const std::size_t last = end_;
    if (at_ > text_.size() || !regex_->find(text_, at_, begin_, end_)) break;
    at_ = end_;
    if (begin_ < end_ || !any_ || end_ != last) return any_ = true;
    // An empty match directly after another match does not count: the search goes on after the next character.
    at_ += end_ < text_.size() ? first_character(text_.substr(end_)).length : 1;
  }
  done_ = true;
  return false;
}

namespace {

// The text with the control character SUBSTITUTE for each byte that is not UTF-8.
std::string with_substitutes(std::string_view text) {
  std::string valid(text);
  for (std::size_t at = 0; const auto invalid = find_invalid_utf8(std::string_view(valid).substr(at));) {
    at += *invalid;
    valid[at] = '\x1a';
  }
  return valid;
}

class RegexStep final : public SplitStep {
 public:
  RegexStep(const std::string& regex, MatchedPart part, bool inverted)
      : regex_(regex), part_(part), inverted_(inverted) {}

  void split(Pieces& pieces) const override {
    std::vector<std::string_view> out;
    for (const std::string_view piece : pieces.pieces) {
      PartCollector parts(piece, part_, out);
      // PCRE2 reads UTF-8 only: each other byte is replaced, so that offsets stay as they are.
      std::string replaced;
      const bool valid = !find_invalid_utf8(piece);
      if (!valid) replaced = with_substitutes(piece);
      const std::string_view text = valid ? piece : replaced;
      for (RegexMatches matches(regex_, text); matches.next();) {
        parts.add(matches.begin(), inverted_);
        matches.empty() ? parts.add_empty(!inverted_) : parts.add(matches.end(), !inverted_);
      }
      parts.add(piece.size(), inverted_);
      parts.finish();
    }
    pieces.pieces.swap(out);
  }

 private:
  Regex regex_;
  MatchedPart part_;
  bool inverted_;
};

}  // namespace

std::unique_ptr<SplitStep> make_regex_step(const std::string& regex, MatchedPart part, bool inverted) {
  return std::make_unique<RegexStep>(regex, part, inverted);
}

}  // namespace trainctl
