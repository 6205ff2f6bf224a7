// The data set of texts with a class each.
#include <algorithm>

#include "core/base/format.h"
#include "core/base/hash.h"
#include "core/base/table.h"
#include "core/base/utf8.h"
#include "io/datasets/class_numbers.h"
#include "io/datasets/options.h"
#include "io/datasets/tables/csv.h"
#include "io/datasets/text/labelled_texts.h"
#include "io/datasets/text/text_tokenizer.h"
#include "io/datasets/text/text_vectorization.h"

namespace trainctl {

template <>
struct EnumNames<Standardize> {
  static constexpr EnumName<Standardize> names[] = {
      {Standardize::lower_and_strip_punctuation, "lower_and_strip_punctuation"},
      {Standardize::lower, "lower"},
      {Standardize::strip_punctuation, "strip_punctuation"},
      {Standardize::none, "none"}};
};

namespace {

// The options that decide which numbers a text becomes.
struct TextNumbering {
  std::optional<TokenizerName> tokenizer;  // empty: words are numbered
  std::string encoding = automatic_encoding;
  std::optional<std::int64_t> max_tokens;
  Standardize standardize = Standardize::lower_and_strip_punctuation;
  std::int64_t positions = 0;
};

// Encodes texts on one thread: the tokenizer's ids before a text, those of its beginning, and those after it.
TextWork encoding_work(const Tokenizer& tokenizer, std::int64_t positions) {
  std::shared_ptr<Encoder> encoder = tokenizer.make_encoder(SpecialText::plain);
  return [&tokenizer, encoder, positions](std::string_view text, const std::string& place, WorkedText& worked) {
    const auto most = static_cast<std::size_t>(positions);
    const auto &before = tokenizer.ids_before(), &after = tokenizer.ids_after();
    std::vector<TokenId>& ids = worked.ids = before;
    encoder->encode(text, ids, place);
    ids.resize(std::min(ids.size(), most > after.size() ? std::max(most - after.size(), before.size()) : most));
    ids.insert(ids.end(), after.begin(), after.end());
    ids.resize(std::min(ids.size(), most));
    ids.shrink_to_fit();
  };
}

TextWork standardizing_work(Standardize how) {
  return [how](std::string_view text, const std::string& place, WorkedText& worked) {
    if (const auto invalid = find_invalid_utf8(text)) {
      data_error(place, format("byte {} of the text is not UTF-8, and a run keeps the vocabulary as UTF-8", *invalid),
                 "convert the file to UTF-8, for example with iconv, or use `tokenizer: bytes`");
    }
    worked.text = standardized(text, how);
  };
}

class ClassifiedTexts final : public Dataset {
 public:
  ClassifiedTexts(const std::string& path, const CorpusFormat& columns, const TextNumbering& numbering,
                  const DeclaredInfo& declared, TextClasses classes) {
    info_.sample = {numbering.positions};
    info_.dtype = DType::int32;
    std::optional<TextTokenizer> tokenizer;
    if (numbering.tokenizer) tokenizer = open_tokenizer(*numbering.tokenizer, numbering.encoding);
    read_ = read_labelled_texts(path, columns, classes, [&]() -> TextWork {
      return tokenizer ? encoding_work(*tokenizer->tokenizer, numbering.positions)
                       : standardizing_work(numbering.standardize);
    });
    if (classes == TextClasses::read) {
      number_classes(path, declared);
    } else {
      info_.target = {0};
    }
    if (tokenizer) {
      padding_ = padding_token_of(*tokenizer->tokenizer);
      check_embedding(tokenizer->path, tokenizer->tokenizer->vocabulary_size(), declared.use.tokens,
                      "as large as the vocabulary");
    } else {
      number_words(path, numbering, declared);
    }
    std::string hashes;
    for (const WorkedText& text : read_.texts) {
      hashes += format("{:016x} {}\n", xxh3(text.ids.data(), text.ids.size() * sizeof(TokenId)), text.class_name);
    }
    info_.fingerprint =
        format("{} texts of {} tokens {:016x}", size(), numbering.positions, xxh3(hashes.data(), hashes.size()));
    info_.warning = read_.left_out;
  }

  const DatasetInfo& info() const override { return info_; }
  std::int64_t size() const override { return std::ssize(read_.texts); }
  bool in_memory() const override { return true; }
  std::int32_t label(std::int64_t index) const override { return labels_[static_cast<std::size_t>(index)]; }
  std::string name_of(std::int64_t index) const override { return read_.place_of(text(index)); }

  void read(std::int64_t index, Sample& sample) const override {
    const std::vector<TokenId>& ids = text(index).ids;
    std::int32_t* const tokens = sample.make_int32(info_.sample);
    std::copy(ids.begin(), ids.end(), tokens);
    std::fill(tokens + ids.size(), tokens + info_.sample[0], padding_);
  }

 private:
  const WorkedText& text(std::int64_t index) const { return read_.texts[static_cast<std::size_t>(index)]; }

  static void check_embedding(const std::string& path, std::int64_t vocabulary, std::int64_t embedding,
                              const std::string& how) {
    if (embedding == 0 || vocabulary <= embedding) return;
    data_error(path,
               format("has a vocabulary of {}, but the embedding has {}", counted(vocabulary, "token"),
                      counted(embedding, "row")),
               "set a larger input_dim, " + how);
  }

  void number_classes(const std::string& path, const DeclaredInfo& declared) {
    const NamedSamples samples{size(), [this](std::int64_t i) { return text(i).class_name; },
                               [this](std::int64_t i) { return name_of(i); }};
    ClassNumbers numbers = trainctl::number_classes(samples, path, declared);
    info_.class_names = std::move(numbers.names);
    info_.classes = numbers.classes;
    labels_ = std::move(numbers.labels);
  }

  // Numbers the words of all texts, with the vocabulary of the training texts.
  void number_words(const std::string& path, const TextNumbering& numbering, const DeclaredInfo& declared) {
    const std::shared_ptr<const std::vector<std::string>> kept =
        declared.training ? declared.training->vocabulary : nullptr;
    info_.vocabulary = kept ? kept : count_words(numbering, declared);
    const WordVocabulary vocabulary(*info_.vocabulary);
    check_embedding(path, vocabulary.size(), declared.use.tokens, format("or `max_tokens: {}`", declared.use.tokens));
    for (WorkedText& of : read_.texts) {
      for_each_word(of.text, [&](std::string_view word) {
        if (std::ssize(of.ids) < numbering.positions) of.ids.push_back(vocabulary.number_of(word));
      });
      of.text = std::string();
    }
  }

  std::shared_ptr<const std::vector<std::string>> count_words(const TextNumbering& numbering,
                                                              const DeclaredInfo& declared) const {
    WordCounter counter;
    const std::vector<std::int64_t> training =
        declared.trained_on ? declared.trained_on(*this) : std::vector<std::int64_t>();
    for (const std::int64_t index : training) counter.add(text(index).text);
    for (std::int64_t i = 0; training.empty() && i < size(); ++i) counter.add(text(i).text);
    return std::make_shared<const std::vector<std::string>>(counter.vocabulary(numbering.max_tokens).words());
  }

  DatasetInfo info_;
  LabelledTexts read_;
  std::vector<std::int32_t> labels_;
  std::int32_t padding_ = 0;
};

struct ClassifiedTextOptions final : DatasetOptions, TextNumbering {
  std::string text_column = "text", class_column = "label", delimiter = ",";

  std::shared_ptr<const Dataset> open(const DataLocation& where, SplitKind, const DeclaredInfo& declared,
                                      std::uint64_t) const override {
    return open_texts(paths_of({where}, "text_classification")[0], declared, TextClasses::read);
  }
  std::shared_ptr<const Dataset> open_inputs(const std::vector<std::string>& paths,
                                             const DeclaredInfo& declared) const override {
    if (paths.size() > 1) {
      throw Error(ErrorKind::config, format("{} paths of texts are given", paths.size()), "give one at a time");
    }
    return open_texts(paths[0], declared, TextClasses::absent);
  }
  DatasetGroup open_pieces(const std::vector<DataLocation>& pieces, SplitKind split, const DeclaredGroup& declared,
                           std::uint64_t seed) const override {
    if (pieces.size() > 1) {
      throw Error(ErrorKind::config, "text_classification reads one path, since all texts share a vocabulary",
                  "put the files into one folder");
    }
    return open_group(pieces[0], split, declared, seed);
  }
  std::optional<Shape> known_shape() const override { return Shape{positions}; }

 private:
  std::shared_ptr<const Dataset> open_texts(const std::string& path, const DeclaredInfo& declared,
                                            TextClasses classes) const {
    CorpusFormat columns{.text_column = text_column, .class_column = class_column, .delimiter = delimiter};
    if (classes == TextClasses::absent) columns.text_remedy = "name it with --set data.text_column=NAME";
    return std::make_shared<ClassifiedTexts>(path, columns, *this, declared, classes);
  }
};

}  // namespace

Section text_classification_choice() {
  return Keys<ClassifiedTextOptions>("text_classification",
                                     "Texts with a class each. A sample is a row of tokens: the beginning of a text, "
                                     "and padding after a shorter "
                                     "one.")
      .key("path", &ClassifiedTextOptions::path,
           "A .jsonl or .csv file, or a folder of such files; or a folder that holds a folder of text files for each "
           "class, as for Keras' text_dataset_from_directory.")
      .required("positions", &ClassifiedTextOptions::positions,
                "Tokens of a sample, like Keras' output_sequence_length.", between(1, 1 << 24))
      .key("text_column", &ClassifiedTextOptions::text_column,
           "The key of the text in .jsonl files, and its column in .csv files.")
      .key("class_column", &ClassifiedTextOptions::class_column,
           "The key or the column of the class: a number from 0, or a name. Names are numbered in bytewise order.")
      .key("delimiter", &ClassifiedTextOptions::delimiter, "The character between the fields of .csv files.")
      .key("tokenizer", &ClassifiedTextOptions::tokenizer,
           "bytes, or the path of a tokenizer.json, of a rank file of tiktoken, of a model of SentencePiece, or of a "
           "folder that holds one. The tokens that the file puts before and after a text, such as [CLS] and [SEP], "
           "are part of a sample; padding is its padding token, such as [PAD], or token 0 if it has none. Without a "
           "tokenizer, words are numbered as by Keras' TextVectorization: 0 is padding, 1 an unknown word, and the "
           "words of the training texts follow by how often they occur. The run keeps this vocabulary for `predict`.")
      .key("encoding", &ClassifiedTextOptions::encoding, encoding_meaning)
      .key("max_tokens", &ClassifiedTextOptions::max_tokens,
           "Without a tokenizer: the largest vocabulary, with padding and the unknown word. Default: all words.",
           at_least(3))
      .key(
          "standardize", &ClassifiedTextOptions::standardize,
          "Without a tokenizer: how texts are changed before they are split at white space. Letters from A to Z become "
          "lower case, and the punctuation of ASCII is removed.")
      .check([](const ClassifiedTextOptions& options, const Node& node, Reader& reader) {
        check_encoding(options.encoding, options.tokenizer.has_value(), node, reader);
        check_delimiter(options.delimiter, node, reader);
        const Node* max_tokens = node.find("max_tokens");
        if (!options.tokenizer || !options.max_tokens) return;
        reader.error(max_tokens->location, "max_tokens is for numbered words, but `tokenizer` has its own vocabulary");
      });
}

}  // namespace trainctl
