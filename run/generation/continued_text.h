// A text that a language model continues token by token: its tokens, its text so far, and when it ends.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/text/tokenizer.h"

namespace trainctl {

// When a text ends.
struct EndOptions {
  std::int64_t max_tokens = 200;     // new tokens
  std::vector<std::string> stop;     // the text ends before the first of these texts
  std::optional<TokenId> end_token;  // the token with which documents end; it has no text of its own
};

// Why a text has ended: it has max_tokens new tokens, its last token ends documents, or a text of `stop` followed.
enum class EndReason { length, end_token, stop };
// Returns "length", "end_token" or "stop".
std::string_view name_of(EndReason reason);

class ContinuedText {
 public:
  // `prompt`: the tokens that the text begins with, at least one. `options` must outlive the object.
  ContinuedText(std::vector<TokenId> prompt, const Tokenizer& tokenizer, const EndOptions& options);

  // Appends a token; the text must not have ended. Throws Error{data} if the token has no text.
  void add(TokenId token);
  const std::optional<EndReason>& ended() const { return ended_; }

  const std::vector<TokenId>& tokens() const { return tokens_; }  // the prompt's and the new ones
  std::int64_t new_tokens() const { return std::ssize(tokens_) - prompt_tokens_; }
  // The new text. It may still lose its end while a stop text may have begun.
  const std::string& text() const { return text_; }
  // The beginning of text() that stays as it is.
  std::string_view settled() const;

 private:
  void end(EndReason reason);

  const EndOptions& options_;
  std::unique_ptr<Decoder> decoder_;
  std::vector<TokenId> tokens_;
  std::int64_t prompt_tokens_;
  std::string text_;
  std::optional<EndReason> ended_;
};

}  // namespace trainctl
