// Splits the lines of a corpus as the trained vocabulary will split texts, trains, and writes tokenizer.json.
#include "io/text/train/train.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/table.h"
#include "io/text/models/byte_characters.h"
#include "io/text/pipeline/normalizer.h"
#include "io/text/pipeline/pre_tokenizer.h"
#include "io/text/unicode/characters.h"

namespace trainctl {
namespace {

LineWords byte_level_words(Pattern pattern) {
  std::shared_ptr<const Splitter> splitter = make_splitter(pattern);
  return [splitter](std::string_view line, const std::function<void(std::string_view)>& found) {
    each_piece(*splitter, line, found);
  };
}

LineWords bert_words(bool lower_case) {
  std::shared_ptr<const Normalizer> normalizer =
      make_bert_normalizer({.strip_accents = lower_case, .lower_case = lower_case});
  std::shared_ptr<const SplitStep> spaces = make_character_step(is_white_space, MatchedPart::removed);
  std::shared_ptr<const SplitStep> punctuation = make_character_step(is_bert_punctuation, MatchedPart::isolated);
  return [=](std::string_view line, const std::function<void(std::string_view)>& found) {
    std::string text(line);
    normalizer->normalize(text);
    Pieces pieces;
    if (!text.empty()) pieces.pieces.push_back(text);
    spaces->split(pieces);
    punctuation->split(pieces);
    for (const std::string_view piece : pieces.pieces) found(piece);
  };
}

Json byte_level_json(bool use_regex) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", use_regex}};
}

Json pre_tokenizer_json(const VocabularyRequest& request) {
  if (request.kind == VocabularyKind::word_piece) return {{"type", "BertPreTokenizer"}};
  if (request.pattern == Pattern::gpt2) return byte_level_json(true);
  const Json split = {{"type", "Split"},
                      {"pattern", {{"Regex", pattern_text(request.pattern)}}},
                      {"behavior", "Isolated"},
                      {"invert", false}};
  return {{"type", "Sequence"}, {"pretokenizers", Json::array({split, byte_level_json(false)})}};
}

Json model_json(const VocabularyRequest& request) {
  if (request.kind == VocabularyKind::word_piece) {
    return {{"type", "WordPiece"},
            {"unk_token", "[UNK]"},
            {"continuing_subword_prefix", "##"},
            {"max_input_chars_per_word", 100}};
  }
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", nullptr},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", false},
          {"byte_fallback", false},
          {"ignore_merges", false}};
}

// A WordPiece vocabulary with [CLS] and [SEP] puts them around a text, as BERT's tokenizer does.
Json post_processor_json(const VocabularyRequest& request) {
  if (request.kind != VocabularyKind::word_piece) return nullptr;
  const auto token = [&](const char* text) -> Json {
    const auto found = std::find(request.special_tokens.begin(), request.special_tokens.end(), text);
    if (found == request.special_tokens.end()) return nullptr;
    return Json::array({text, found - request.special_tokens.begin()});
  };
  const Json first = token("[CLS]"), last = token("[SEP]");
  if (first.is_null() || last.is_null()) return nullptr;
  return {{"type", "BertProcessing"}, {"sep", last}, {"cls", first}};
}

// The text of the file. The lists of the vocabulary and the merges, whose keys a tree would search one after the other,
// are put in as text.
std::string file_text(const VocabularyRequest& request, const TrainedVocabulary& trained) {
  const bool bpe = request.kind == VocabularyKind::bpe;
  Json added = Json::array();
  for (std::size_t i = 0; i < request.special_tokens.size(); ++i) {
    added.push_back({{"id", i},
                     {"content", request.special_tokens[i]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  const Json bert = {{"type", "BertNormalizer"},
                     {"clean_text", true},
                     {"handle_chinese_chars", true},
                     {"strip_accents", nullptr},
                     {"lowercase", request.lower_case}};
  const Json word_piece_decoder = {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}};
  const Json file = {{"version", "1.0"},
                     {"truncation", nullptr},
                     {"padding", nullptr},
                     {"added_tokens", added},
                     {"normalizer", bpe ? Json() : bert},
                     {"pre_tokenizer", pre_tokenizer_json(request)},
                     {"post_processor", post_processor_json(request)},
                     {"decoder", bpe ? byte_level_json(true) : word_piece_decoder},
                     {"model", model_json(request)}};
  std::string text = json_text(file);
  text.resize(text.size() - 2);  // the ends of the model and of the file
  text += R"(,"vocab":{)";
  for (std::size_t id = 0; id < trained.tokens.size(); ++id) {
    text += (id > 0 ? "," : "") + json_text(Json(trained.tokens[id])) + ":" + std::to_string(id);
  }
  text += "}";
  if (bpe) {
    text += R"(,"merges":[)";
    for (std::size_t i = 0; i < trained.merges.size(); ++i) {
      text += (i > 0 ? "," : "") + json_text(Json::array({trained.merges[i].first, trained.merges[i].second}));
    }
    text += "]";
  }
  return text + "}}\n";
}

}  // namespace

TrainedTokenizer train_tokenizer(const VocabularyRequest& request) {
  const bool bpe = request.kind == VocabularyKind::bpe;
  require(request.pattern != Pattern::cl100k, "tokenizer.json cannot hold this pattern");
  const auto line_words = [&] { return bpe ? byte_level_words(request.pattern) : bert_words(request.lower_case); };
  WordCounts words = count_words(request.files, request.texts, request.threads, line_words, !bpe, "WordPiece");
  if (words.empty()) {
    throw Error(ErrorKind::data, "the files of the corpus have no words", "give text files that are not empty");
  }
  TrainingOptions options;
  options.vocabulary_size = request.vocabulary_size;
  options.min_frequency = request.min_frequency;
  options.special_tokens = request.special_tokens;
  if (bpe) {
    for (auto& [word, count] : words) word = characters_of_bytes(word);
    for (int byte = 0; byte < 256; ++byte) {
      const char one = static_cast<char>(byte);
      options.alphabet.push_back(characters_of_bytes({&one, 1}));
    }
  } else {
    options.continuing_prefix = "##";
  }
  const TrainedVocabulary trained = train_bpe(words, options);
  const auto size = static_cast<std::int64_t>(trained.tokens.size());
  if (size > request.vocabulary_size) {
    throw Error(ErrorKind::config,
                format("a vocabulary of {} is too small: its special tokens and characters are {}",
                       counted(request.vocabulary_size, "token"), grouped(size)),
                format("ask for at least {} tokens", size));
  }
  return {file_text(request, trained), size, static_cast<std::int64_t>(trained.merges.size()),
          static_cast<std::int64_t>(words.size())};
}

}  // namespace trainctl
