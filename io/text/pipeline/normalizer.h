// Changes a text before it is split, by the steps that tokenizer.json calls normalizers.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace trainctl {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // Replaces `text` by the normalized text. Threads may share the object.
  virtual void normalize(std::string& text) const = 0;
  // The first `begin` bytes of `text` stand for the first character of the text before all normalizers. Returns the
  // number of such bytes of the normalized text, as tokenizers aligns both; 0: the character was removed.
  virtual std::size_t begin_after(const std::string& text, std::size_t begin) const;
  // Whether texts may have bytes that are not UTF-8, which stay as they are.
  virtual bool takes_any_bytes() const { return false; }
};

// The normalization forms of Unicode, by utf8proc.
enum class NormalForm { nfc, nfd, nfkc, nfkd };
std::unique_ptr<Normalizer> make_unicode_normalizer(NormalForm form);
std::unique_ptr<Normalizer> make_lower_case();
// Removes marks (M).
std::unique_ptr<Normalizer> make_strip_accents();
std::unique_ptr<Normalizer> make_strip(bool left, bool right);
// Puts a text in front of texts that are not empty.
std::unique_ptr<Normalizer> make_prepend(std::string text);
// Replaces each occurrence of a text, which is not empty, or each match of a regular expression.
std::unique_ptr<Normalizer> make_replace(std::string text, std::string by);
std::unique_ptr<Normalizer> make_regex_replace(const std::string& regex, std::string by);
// What SentencePiece's rule nmt does: removes control characters, and makes spaces of other white space.
std::unique_ptr<Normalizer> make_nmt();

// BERT's normalizer.
struct BertOptions {
  bool clean_text = true;    // removes control characters, and makes spaces of white space
  bool separate_cjk = true;  // puts spaces around ideographs
  bool strip_accents = true;
  bool lower_case = true;
};
std::unique_ptr<Normalizer> make_bert_normalizer(const BertOptions& options);

// SentencePiece's compiled map of characters: `bytes` is the content of precompiled_charsmap. Throws Error{data} if it
// is damaged.
std::unique_ptr<Normalizer> make_precompiled_normalizer(std::string bytes);

}  // namespace trainctl
