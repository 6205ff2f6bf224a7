// How the texts of tokens become the text of a sequence, as tokenizer.json's decoders say.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "io/text/tokenizer.h"

namespace trainctl {

class Model;
class AddedTokens;

struct DecoderOptions {
  // bytes: the texts of tokens are bytes. characters: texts are joined. words: texts are words or their continuations.
  enum class Join { bytes, characters, words } join = Join::bytes;
  std::string space;               // the text that stands for a space, such as "\u2581"; empty: none
  bool strip_first_space = false;  // the first space of a sequence is left out
  bool drop_first_spaces = false;  // all texts `space` in the first token are left out
  bool byte_tokens = false;        // <0x00> to <0xFF> are bytes
  std::string continuing_prefix;   // words: what continuations begin with, such as "##"
  std::string word_suffix;         // what the last token of a word ends with, such as "</w>"
  bool clean_up = false;           // words: no space before punctuation, and contractions are joined
};

// The decoder of a model and its added tokens, which must outlive it.
std::unique_ptr<Decoder> make_text_decoder(const Model& model, const AddedTokens& added, const DecoderOptions& options,
                                           TokenId size);

}  // namespace trainctl
