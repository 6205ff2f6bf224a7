// Decodes the tokens of a text one by one, and looks for its end.
#include "run/generation/continued_text.h"

#include <algorithm>
#include <utility>

namespace trainctl {
namespace {

// The length of the longest end of `text` with which `stop` begins.
std::size_t begun(std::string_view text, std::string_view stop) {
  for (std::size_t length = std::min(text.size(), stop.size() - 1); length > 0; --length) {
    if (text.ends_with(stop.substr(0, length))) return length;
  }
  return 0;
}

}  // namespace

std::string_view name_of(EndReason reason) {
  switch (reason) {
    case EndReason::length:
      return "length";
    case EndReason::end_token:
      return "end_token";
    case EndReason::stop:
      return "stop";
  }
  return "";
}

ContinuedText::ContinuedText(std::vector<TokenId> prompt, const Tokenizer& tokenizer, const EndOptions& options)
    : options_(options),
      decoder_(tokenizer.make_decoder()),
      tokens_(std::move(prompt)),
      prompt_tokens_(std::ssize(tokens_)) {
  // The decoder reads the prompt, since the text of a token may depend on the one before it.
  std::string ignored;
  for (const TokenId token : tokens_) decoder_->decode(token, ignored);
  if (options_.max_tokens == 0) end(EndReason::length);
}

void ContinuedText::add(TokenId token) {
  tokens_.push_back(token);
  if (token == options_.end_token) return end(EndReason::end_token);
  const std::size_t before = text_.size();
  decoder_->decode(token, text_);
  std::size_t first = std::string::npos;
  for (const std::string& stop : options_.stop) {
    const std::size_t from = before >= stop.size() ? before - stop.size() + 1 : 0;
    first = std::min(first, text_.find(stop, from));
  }
  if (first != std::string::npos) {
    text_.resize(first);
    ended_ = EndReason::stop;
  } else if (new_tokens() == options_.max_tokens) {
    end(EndReason::length);
  }
}

// Ends the text with the bytes that the decoder holds back.
void ContinuedText::end(EndReason reason) {
  decoder_->finish(text_);
  ended_ = reason;
}

std::string_view ContinuedText::settled() const {
  std::size_t open = 0;
  for (const std::string& stop : options_.stop) open = std::max(open, ended_ ? 0 : begun(text_, stop));
  return std::string_view(text_).substr(0, text_.size() - open);
}

}  // namespace trainctl
