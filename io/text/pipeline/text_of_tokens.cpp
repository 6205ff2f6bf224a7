// Decodes token by token, and holds back unfinished characters.
#include "io/text/pipeline/text_of_tokens.h"

#include <optional>
#include <utility>

#include "io/text/models/model.h"
#include "io/text/pipeline/added_tokens.h"
#include "io/text/utf8_tail.h"

namespace trainctl {
namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; !from.empty() && (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

// The byte of a token such as <0x0A>.
std::optional<char> byte_of(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  int value = 0;
  for (const char c : token.substr(3, 2)) {
    if (!((c >= '0' && c <= '9') || (c >= 'A' && c <= 'F'))) return std::nullopt;
    value = value * 16 + (c <= '9' ? c - '0' : c - 'A' + 10);
  }
  return static_cast<char>(value);
}

class TextDecoder final : public Decoder {
 public:
  TextDecoder(const Model& model, const AddedTokens& added, const DecoderOptions& options, TokenId size)
      : model_(model), added_(added), options_(options), size_(size) {}

  void decode(TokenId id, std::string& text) override {
    std::string token;
    const AddedToken* added = added_.with_id(id);
    if (added != nullptr) {
      token = added->text;
    } else if (!model_.token(id, token)) {
      throw_no_token(id, size_);
    }
    if (std::exchange(space_after_, false)) token.insert(0, " ");
    if (options_.join != DecoderOptions::Join::bytes) change(token);
    first_ = false;
    tail_.add(token, text);
  }

  void finish(std::string& text) override {
    tail_.finish(text);
    first_ = true;
    space_after_ = false;
  }

 private:
  void change(std::string& token) {
    using Join = DecoderOptions::Join;
    if (options_.byte_tokens) {
      if (const auto byte = byte_of(token)) {
        token = *byte;
        return;
      }
    }
    replace_all(token, options_.space, first_ && options_.drop_first_spaces ? "" : " ");
    if (!options_.word_suffix.empty() && token.ends_with(options_.word_suffix)) {
      token.resize(token.size() - options_.word_suffix.size());
      space_after_ = true;
    }
    if (first_ && options_.strip_first_space && token.starts_with(' ')) token.erase(0, 1);
    if (options_.join != Join::words) return;
    if (!first_) {
      const bool continues = !options_.continuing_prefix.empty() && token.starts_with(options_.continuing_prefix);
      continues ? token.erase(0, options_.continuing_prefix.size()) : token.insert(0, " ");
    }
    if (!options_.clean_up) return;
    constexpr std::pair<std::string_view, std::string_view> replacements[] = {
        {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
        {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (const auto& [from, to] : replacements) replace_all(token, from, to);
  }

  const Model& model_;
  const AddedTokens& added_;
  DecoderOptions options_;
  TokenId size_;
  bool first_ = true;
  bool space_after_ = false;  // a word has ended
  Utf8Tail tail_;
};

}  // namespace

std::unique_ptr<Decoder> make_text_decoder(const Model& model, const AddedTokens& added, const DecoderOptions& options,
                                           TokenId size) {
  return std::make_unique<TextDecoder>(model, added, options, size);
}

}  // namespace trainctl
