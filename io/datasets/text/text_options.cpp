// The data set of texts and token files, for language models.
#include <algorithm>

#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/table.h"
#include "io/datasets/concatenated.h"
#include "io/datasets/inputs.h"
#include "io/datasets/options.h"
#include "io/datasets/preparation.h"
#include "io/datasets/tables/csv.h"
#include "io/datasets/text/corpus.h"
#include "io/datasets/text/language_dataset.h"
#include "io/datasets/text/text_tokenizer.h"
#include "io/datasets/text/token_cache.h"
#include "io/datasets/text/token_file.h"

namespace trainctl {

template <>
struct EnumNames<SpecialText> {
  static constexpr EnumName<SpecialText> names[] = {{SpecialText::plain, "plain"},
                                                    {SpecialText::recognized, "recognized"}};
};
template <>
struct EnumNames<TokenType> {
  static constexpr EnumName<TokenType> names[] = {{TokenType::uint16, "uint16"}, {TokenType::uint32, "uint32"}};
};

namespace {

// The name of the model's input that gets the numbers of documents.
constexpr const char* documents_input = "documents";

struct TextOptions final : DatasetOptions {
  std::optional<TokenizerName> tokenizer;
  std::string encoding = automatic_encoding;
  std::int64_t positions = 0;
  std::string text_column = "text", delimiter = ",";
  std::string begin_token = "auto", end_token = "auto";
  SpecialText special_text = SpecialText::plain;
  bool packing = true;
  bool document_numbers = false;
  std::optional<std::int64_t> stride, evaluation_stride;
  TokenType dtype = TokenType::uint16;

  std::shared_ptr<const Dataset> open(const DataLocation& where, SplitKind split, const DeclaredInfo& declared,
                                      std::uint64_t) const override {
    const DeclaredGroup group{{declared}, {declared}, {}};
    return open_streams(where, split, group).inputs[0];
  }
  DatasetGroup open_group(const DataLocation& where, SplitKind split, const DeclaredGroup& declared,
                          std::uint64_t) const override {
    return open_streams(where, split, declared);
  }
  bool holds_several() const override { return true; }  // open_streams() says which inputs there are
  std::optional<Shape> known_shape() const override { return Shape{positions}; }
  bool predicts_positions() const override { return true; }
  bool knows_text() const override {
    const std::vector<DataLocation> all = pieces();
    return tokenizer ||
           std::none_of(all.begin(), all.end(), [](const auto& piece) { return is_token_file(piece.path.text); });
  }

  std::shared_ptr<const Dataset> open_inputs(const std::vector<std::string>& paths,
                                             const DeclaredInfo& declared) const override {
    for (const std::string& path : paths) {
      if (holds_input_array(path)) continue;
      if (!exists(path)) data_error(path, "does not exist");
      throw Error(ErrorKind::config, path + " is text, and a language model predicts how a text goes on",
                  format("--prompts {} continues each of its lines, and --prompt TEXT a single text; `trainctl eval` "
                         "computes the loss of texts",
                         path));
    }
    return DatasetOptions::open_inputs(paths, declared);
  }

  std::optional<LanguageText> language_text() const override {
    const auto opened =
        tokenizer ? open_tokenizer(*tokenizer, encoding) : tokenizer_for(find_corpus(paths_of(pieces(), "text")[0]));
    if (opened) {
      return LanguageText{*opened, begin_token_of(*opened, begin_token), end_token_of(*opened, end_token), positions};
    }
    throw Error(ErrorKind::config, "the network was trained on token files, and its config names no tokenizer",
                "name the tokenizer of these tokens: --set data.tokenizer=PATH");
  }

  void prepare(const DataLocation& where, const Preparation& preparation) const override {
    const Corpus corpus = find_corpus(paths_of({where}, "text")[0]);
    if (!corpus.files.empty()) cached_tokens(corpus, tokenization(*tokenizer_for(corpus)), preparation);
  }

 private:
  // The tokenizer of a corpus, or of token files if the config names it.
  std::optional<TextTokenizer> tokenizer_for(const Corpus& corpus) const {
    if (!tokenizer && corpus.files.empty()) return std::nullopt;
    return open_tokenizer(tokenizer.value_or(NamedTokenizer::bytes), encoding);
  }

  Tokenization tokenization(const TextTokenizer& opened) const {
    return {opened,
            begin_token_of(opened, begin_token),
            end_token_of(opened, end_token),
            special_text,
            {.text_column = text_column, .delimiter = delimiter}};
  }

  // The numbers of the model's inputs that get the tokens and, if there is one, the numbers of documents.
  std::pair<std::size_t, std::optional<std::size_t>> find_inputs(const DeclaredGroup& declared) const {
    const auto& inputs = declared.use.inputs;
    const auto found =
        std::find_if(inputs.begin(), inputs.end(), [](const auto& input) { return input.name == documents_input; });
    const bool has_documents = found != inputs.end();
    if (declared.use.targets.size() > 1) {
      throw Error(ErrorKind::config,
                  format("text has one target, the next tokens, but the model has {}",
                         counted(declared.use.targets.size(), "output")),
                  "give the model one output");
    }
    if (has_documents != document_numbers) {
      throw Error(ErrorKind::config,
                  document_numbers ? "`document_numbers: true` needs a model with the input 'documents'"
                                   : "the model has the input 'documents', which text provides only on request",
                  document_numbers
                      ? "declare `inputs: [tokens, documents]` in the model, and name them in the layers that read "
                        "them, or under `with` of the preset gpt2 or llama: {tokens: tokens, documents: documents}"
                      : "set `document_numbers: true`");
    }
    if (inputs.size() != (has_documents ? 2U : 1U)) {
      throw Error(ErrorKind::config,
                  format("the model has {}, but text provides the tokens{}", counted(inputs.size(), "input"),
                         has_documents ? " and the numbers of documents" : ""),
                  "name the inputs tokens and documents");
    }
    if (!has_documents) return {0, std::nullopt};
    const auto documents = static_cast<std::size_t>(found - inputs.begin());
    return {1 - documents, documents};
  }

  DatasetGroup open_streams(const DataLocation& where, SplitKind split, const DeclaredGroup& declared) const {
    const auto [tokens, documents] = find_inputs(declared);
    const Corpus corpus = find_corpus(paths_of({where}, "text")[0]);
    const std::optional<TextTokenizer> opened = tokenizer_for(corpus);
    LanguageCut cut = cut_of(split, declared.targets[0]);
    cut.embedding = declared.use.inputs[tokens].tokens;
    cut.vocabulary =
        declared.targets[0].known_classes().value_or(opened ? opened->tokenizer->vocabulary_size() : cut.embedding);
    if (cut.vocabulary == 0) {
      throw Error(ErrorKind::config, "the number of different tokens in the token files is unknown",
                  "set `tokenizer`, or `classes`");
    }
    if (opened) {
      cut.end_token = end_token_of(*opened, end_token);
      cut.padding = padding_token_of(*opened->tokenizer);
      cut.token_bytes = counter_of_bytes(opened->tokenizer);
    }
    std::vector<DatasetGroup> groups;
    for (const std::string& path : corpus.token_files) {
      groups.push_back(open_cut(open_foreign_tokens(path, dtype), cut, documents));
    }
    if (!corpus.files.empty()) {
      const Preparation preparation{declared.targets[0].cache_folder};
      TokenStream stream = cached_tokens(corpus, tokenization(*opened), preparation);
      groups.push_back(open_cut(std::move(stream), cut, documents));
    }
    return groups.size() == 1 ? groups[0] : concatenated(groups, false);
  }

  static DatasetGroup open_cut(TokenStream stream, const LanguageCut& cut, std::optional<std::size_t> documents) {
    DatasetGroup group = language_dataset(std::move(stream), cut, documents.has_value());
    if (documents == 0) std::swap(group.inputs[0], group.inputs[1]);
    return group;
  }

  LanguageCut cut_of(SplitKind split, const DeclaredInfo& target) const {
    LanguageCut cut;
    cut.positions = positions;
    cut.packing = packing;
    const bool training = split == SplitKind::training;
    cut.stride = (training ? stride : evaluation_stride).value_or(positions);
    cut.counts_once = !training || cut.stride == positions;
    if (training && packing && cut.stride < positions && target.trained_on) {
      throw Error(ErrorKind::config,
                  "with a `stride` below `positions`, samples overlap, so that `validation: {split: ...}` would judge "
                  "tokens that the network was trained on",
                  "give validation a `path` of its own, or leave out `stride`");
    }
    return cut;
  }
};

}  // namespace

Section text_choice() {
  return Keys<TextOptions>(
             "text",
             "Text or token files for language models. A sample is a row of tokens, and its target is the token that "
             "follows each of them, as a class for each position.")
      .key("path", &TextOptions::path,
           "A file or a folder, with all files in it and in its subfolders in bytewise order: plain text, each file a "
           "document; .jsonl, each line a document; .csv, each row a document. Or token files: .bin of plain numbers "
           "(`dtype`) or of Megatron-LM with its .idx beside it, .npy of whole numbers of one dimension.")
      .required("positions", &TextOptions::positions, "Tokens of a sample.", between(1, 1 << 24))
      .key("tokenizer", &TextOptions::tokenizer,
           "bytes (the default for text: 256 bytes and the end of a document), or the path of a tokenizer.json, of a "
           "rank file of tiktoken, of a model of SentencePiece, or of a folder that holds one. Text is tokenized once, "
           "into a file in `cache_path`. For token files it names the vocabulary; without it, `classes` or the "
           "embedding's input_dim does.")
      .key("encoding", &TextOptions::encoding, encoding_meaning)
      .key("text_column", &TextOptions::text_column,
           "The key of the text in .jsonl files, and its column in .csv files.")
      .key("delimiter", &TextOptions::delimiter, "The character between the fields of .csv files.")
      .key("begin_token", &TextOptions::begin_token,
           "The token with which every document and every prompt begins: auto (the vocabulary's own, if it has one), "
           "none, or the text of a special token.")
      .key("end_token", &TextOptions::end_token,
           "The token with which every document ends: auto, none or a text, as for `begin_token`.")
      .key("special_text", &TextOptions::special_text,
           "How the text of a special token within a document is read. plain: like other text, so that a document "
           "cannot end itself; recognized: as the special token.")
      .key("packing", &TextOptions::packing,
           "Whether documents follow each other in one stream that is cut into samples. Otherwise each document is a "
           "sample: a longer one is cut, and after a shorter one come positions of weight 0.")
      .key("document_numbers", &TextOptions::document_numbers,
           "Whether the model has a second input `documents` with the number of the document, 0, 1, 2, ..., of each "
           "token in the sample, so that attention can keep documents apart.")
      .key("stride", &TextOptions::stride,
           "Tokens between the beginnings of two training samples; default: `positions`, so that samples do not "
           "overlap and every token is the target of one position in an epoch.",
           at_least(1))
      .key(
          "evaluation_stride", &TextOptions::evaluation_stride,
          "Tokens between the beginnings of two samples in validation and test; default: `positions`. With fewer, each "
          "token is judged with more tokens before it. Every token is judged once: the positions that an earlier "
          "sample has judged have weight 0.",
          at_least(1))
      .key("dtype", &TextOptions::dtype, "The type of the numbers in .bin files without an index.")
      .check([](const TextOptions& options, const Node& node, Reader& reader) {
        const auto check = [&](const char* key, const std::optional<std::int64_t>& stride) {
          if (!stride) return;
          const SourceLocation& location = node.find(key)->location;
          if (*stride > options.positions) {
            reader.error(location,
                         format("{} must be at most `positions`, {}: tokens between samples would be left out", key,
                                options.positions));
          }
          if (!options.packing) reader.error(location, format("{} needs `packing: true`", key));
        };
        check_encoding(options.encoding, options.tokenizer.has_value(), node, reader);
        check_delimiter(options.delimiter, node, reader);
        check("stride", options.stride);
        check("evaluation_stride", options.evaluation_stride);
        if (!options.document_numbers || options.packing) return;
        reader.error(node.location, "`document_numbers` needs `packing: true`: a sample is one document otherwise");
      });
}

}  // namespace trainctl
