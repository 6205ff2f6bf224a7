// Reads the model of tokenizer.json.
#include "core/base/error.h"
#include "core/base/format.h"
#include "io/text/files/json_parts.h"
#include "io/text/models/bpe.h"
#include "io/text/models/byte_characters.h"
#include "io/text/models/unigram.h"
#include "io/text/models/word_models.h"

namespace trainctl {
namespace {

// The vocabulary of a model, and the tokens of a byte vocabulary that stand for no bytes.
Vocabulary vocabulary_of(const TokenizerJson& file, bool bytes, OtherTokens& others) {
  Vocabulary vocabulary;
  std::string text;
  // A table has an entry for each id, so that ids must not be far larger than the number of tokens.
  const auto limit = static_cast<std::int64_t>(2 * file.vocabulary.size() + 1'000'000);
  for (const auto& [token, id] : file.vocabulary) {
    if (id > limit) throw Error(ErrorKind::data, format("model.vocab: the id {} of '{}' is too large", id, token));
    const bool converted = bytes && bytes_of_characters(token, text);
    if (bytes && !converted) {
      others.emplace(id, token);
    } else if (!vocabulary.add(converted ? text : token, id)) {
      throw Error(ErrorKind::data, format("model.vocab: the token '{}' or its id {} occurs twice", token, id));
    }
  }
  return vocabulary;
}

// The id of the model's unknown token; no_token if it names none.
TokenId unknown_of(const Json& model, const TokenizerJson& file) {
  const std::string name = value_or<std::string>(model, "unk_token", "");
  if (name.empty()) return no_token;
  for (const auto& [token, id] : file.vocabulary) {
    if (token == name) return id;
  }
  return no_token;
}

void read_bpe(const Json& model, const TokenizerJson& file, PipelineParts& parts) {
  if (value_or(model, "dropout", 0.0) != 0) throw_unsupported("BPE option", "dropout");
  BpeOptions options;
  options.bytes = parts.bytes;
  options.whole_tokens = value_or(model, "ignore_merges", false);
  options.byte_fallback = value_or(model, "byte_fallback", false);
  options.fuse_unknown = value_or(model, "fuse_unk", false);
  options.unknown = unknown_of(model, file);
  options.continuing_prefix = value_or<std::string>(model, "continuing_subword_prefix", "");
  options.word_suffix = value_or<std::string>(model, "end_of_word_suffix", "");
  if (parts.bytes && !(options.continuing_prefix + options.word_suffix).empty()) {
    throw_unsupported("option of a byte-level BPE", "continuing_subword_prefix or end_of_word_suffix");
  }
  OtherTokens others;
  Vocabulary vocabulary = vocabulary_of(file, parts.bytes, others);
  Merges merges;
  std::string converted;
  const auto find = [&](std::string_view token, std::size_t merge) {
    const bool is_bytes = parts.bytes && bytes_of_characters(token, converted);
    const TokenId id = parts.bytes && !is_bytes ? no_token : vocabulary.find(is_bytes ? converted : token);
    if (id != no_token) return id;
    throw Error(ErrorKind::data, format("model.merges, entry {}: the vocabulary has no token '{}'", merge + 1, token));
  };
  for (std::size_t i = 0; i < file.merges.size(); ++i) {
    const auto& [left, right] = file.merges[i];
    const std::size_t prefix = right.starts_with(options.continuing_prefix) ? options.continuing_prefix.size() : 0;
    const TokenId left_id = find(left, i), right_id = find(right, i);
    const TokenId id = find(left + right.substr(prefix), i);
    merges.add(left_id, right_id, {static_cast<std::uint32_t>(i), id});
  }
  parts.kind = parts.bytes ? "byte-level BPE" : "BPE";
  parts.model = make_bpe(std::move(vocabulary), std::move(merges), std::move(options), std::move(others));
}

void read_words(const Json& model, const TokenizerJson& file, bool pieces, PipelineParts& parts) {
  OtherTokens none;
  Vocabulary vocabulary = vocabulary_of(file, false, none);
  const TokenId unknown = unknown_of(model, file);
  if (!pieces) {
    parts.kind = "WordLevel";
    parts.model = make_word_level(std::move(vocabulary), unknown);
    return;
  }
  if (unknown == no_token) throw Error(ErrorKind::data, "model.unk_token: the vocabulary lacks the unknown token");
  parts.kind = "WordPiece";
  parts.model = make_word_piece(std::move(vocabulary),
                                {.unknown = unknown,
                                 .continuing_prefix = value_or<std::string>(model, "continuing_subword_prefix", "##"),
                                 .longest_word = value_or<std::size_t>(model, "max_input_chars_per_word", 100)});
}

void read_unigram(const Json& model, const TokenizerJson& file, PipelineParts& parts) {
  const auto unknown = value_or<std::int64_t>(model, "unk_id", -1);
  if (file.scores.empty() || unknown < -1 || unknown >= static_cast<std::int64_t>(file.scores.size())) {
    throw Error(ErrorKind::data, "model.unk_id must be the number of a token of the vocabulary");
  }
  if (file.scores.size() > static_cast<std::size_t>(largest_token))
    throw Error(ErrorKind::data, "model.vocab is too long");
  parts.kind = "Unigram";
  parts.model = make_unigram(file.scores, {.unknown = static_cast<TokenId>(unknown),
                                           .byte_fallback = value_or(model, "byte_fallback", false)});
}

}  // namespace

void read_model(const TokenizerJson& file, PipelineParts& parts) {
  const Json& model = file.rest->at("model");
  std::string type = value_or<std::string>(model, "type", "");
  if (type.empty()) {  // old files do not name it
    type = !file.scores.empty()                         ? "Unigram"
           : !file.merges.empty()                       ? "BPE"
           : model.contains("max_input_chars_per_word") ? "WordPiece"
                                                        : "WordLevel";
  }
  if (parts.bytes && type != "BPE") throw_unsupported("model after a ByteLevel pre-tokenizer", type);
  if (type == "BPE") {
    read_bpe(model, file, parts);
  } else if (type == "WordPiece" || type == "WordLevel") {
    read_words(model, file, type == "WordPiece", parts);
  } else if (type == "Unigram") {
    read_unigram(model, file, parts);
  } else {
    throw_unsupported("model", type);
  }
}

}  // namespace trainctl
