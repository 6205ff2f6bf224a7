// Cuts a stream of tokens into samples with the next tokens as targets.
#include "io/datasets/text/language_dataset.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/checked.h"
#include "core/base/format.h"
#include "core/base/table.h"

namespace trainctl {
namespace {

constexpr const char* vocabulary_remedy = "set the tokenizer that made the tokens, or the right number of `classes`";

std::string embedding_remedy(std::int64_t vocabulary) {
  return format("set its input_dim to the size of the vocabulary, {} (of a preset: `with: {{vocabulary: {}}}`)",
                vocabulary, vocabulary);
}

// The tokens of one sample: [begin, begin + count) are its inputs, and each target follows its input.
struct TokenSpan {
  std::int64_t begin = 0, count = 0;
  std::int64_t counted_from = 0;  // positions before this one have weight 0
};

// A stream that is cut into samples.
class CutStream {
 public:
  CutStream(TokenStream stream, const LanguageCut& cut)
      : stream_(std::move(stream)), cut_(cut), embedding_remedy_(embedding_remedy(cut.vocabulary)) {
    const std::string& path = stream_.tokens.path;
    if (cut.packing) {
      const std::int64_t predicted = stream_.count() - 1;  // the first token is not predicted
      if (predicted < cut.positions) {
        data_error(path,
                   format("holds {}, but a sample of {} and their targets needs {}", counted(stream_.count(), "token"),
                          counted(cut.positions, "position"), grouped(cut.positions + 1)),
                   "use more text or fewer `positions`, or set `packing: false`");
      }
      size_ = divide_up(predicted - cut.positions, cut.stride) + 1;
    } else {
      if (stream_.documents.size() == 0) {
        data_error(path, "does not tell where documents end", "leave out `packing: false`");
      }
      for (std::int64_t d = 0; d < stream_.documents.size(); ++d) {
        if (stream_.documents.end(d) - stream_.documents.begin(d) > 1) documents_.push_back(d);
      }
      if (documents_.empty()) data_error(path, "has no document of at least two tokens", "use more text");
      size_ = std::ssize(documents_);
    }
    check_ids();
  }

  const TokenStream& stream() const { return stream_; }
  const LanguageCut& cut() const { return cut_; }
  std::int64_t size() const { return size_; }

  TokenSpan span(std::int64_t index) const {
    if (!cut_.packing) {
      const std::int64_t document = documents_[static_cast<std::size_t>(index)];
      const std::int64_t begin = stream_.documents.begin(document);
      return {begin, std::min(cut_.positions, stream_.documents.end(document) - begin - 1), 0};
    }
    const std::int64_t begin = begin_of(index);
    const std::int64_t judged = index > 0 && cut_.counts_once ? begin_of(index - 1) + cut_.positions : begin;
    return {begin, cut_.positions, judged - begin};
  }

  // Writes `count` ids from a position on; all of them are below the vocabulary and the embedding's rows.
  void read(std::int64_t first, std::int64_t count, std::int32_t* to) const {
    if (cut_.embedding > 0 && cut_.embedding < cut_.vocabulary) {
      read_tokens(stream_, first, count, cut_.embedding, "the embedding", embedding_remedy_.c_str(), to);
    } else {
      read_tokens(stream_, first, count, cut_.vocabulary, "the vocabulary", vocabulary_remedy, to);
    }
  }

 private:
  std::int64_t begin_of(std::int64_t index) const {
    return std::min(index * cut_.stride, stream_.count() - 1 - cut_.positions);
  }

  // Checks the ids of a stream that tells its largest one, and of one that is small enough to be read as a whole.
  // Larger ones are checked when they are read.
  void check_ids() const {
    constexpr std::int64_t read_at_once = 64 << 20;  // ids
    const auto check = [&](std::int64_t limit, const char* owner, const char* remedy) {
      if (limit == 0 || (stream_.largest && *stream_.largest < limit)) return;
      if (!stream_.largest && stream_.count() > read_at_once) return;
      const auto beyond = find_id_beyond(stream_, 0, stream_.count(), limit);
      if (beyond) refuse_id(stream_, *beyond, limit, owner, remedy);
    };
    check(cut_.vocabulary, "the vocabulary", vocabulary_remedy);
    if (cut_.embedding < cut_.vocabulary) check(cut_.embedding, "the embedding", embedding_remedy_.c_str());
  }

  TokenStream stream_;
  LanguageCut cut_;
  std::string embedding_remedy_;
  std::int64_t size_ = 0;
  std::vector<std::int64_t> documents_;  // without packing: those that are samples
};

// The name of a sample for messages.
std::string span_name(const CutStream& cut, std::int64_t index) {
  const TokenSpan span = cut.span(index);
  return format("{}, tokens {} to {}", cut.stream().tokens.path, span.begin, span.begin + span.count);
}

// The tokens of samples, and the next tokens as their targets.
class LanguageDataset final : public Dataset {
 public:
  explicit LanguageDataset(std::shared_ptr<const CutStream> cut) : cut_(std::move(cut)) {
    const LanguageCut& of = cut_->cut();
    info_.sample = info_.target = info_.weight = {of.positions};
    info_.dtype = DType::int32;
    info_.classes = of.vocabulary;
    info_.token_bytes = of.token_bytes;
    info_.ignores_positions = true;
    info_.fingerprint = format("tokens {} by {} in steps of {}{}", cut_->stream().fingerprint, of.positions, of.stride,
                               of.packing ? "" : ", by documents");
    info_.warning = cut_->stream().warning;
  }

  const DatasetInfo& info() const override { return info_; }
  std::int64_t size() const override { return cut_->size(); }
  bool in_memory() const override { return true; }
  std::string name_of(std::int64_t index) const override { return span_name(*cut_, index); }

  void read(std::int64_t index, Sample& sample) const override {
    const TokenSpan span = cut_->span(index);
    std::int32_t* const tokens = sample.make_int32(info_.sample);
    cut_->read(span.begin, span.count, tokens);
    std::fill(tokens + span.count, tokens + info_.sample[0], cut_->cut().padding);
  }

  std::int32_t label(std::int64_t index) const override {
    std::int32_t first = 0;
    cut_->read(cut_->span(index).begin + 1, 1, &first);
    return first;
  }
  void read_labels(std::int64_t index, std::int32_t* labels) const override {
    const TokenSpan span = cut_->span(index);
    cut_->read(span.begin + 1, span.count, labels);
    std::fill(labels + span.count, labels + info_.sample[0], 0);
  }
  void read_weights(std::int64_t index, float* weights) const override {
    const TokenSpan span = cut_->span(index);
    std::fill_n(weights, info_.sample[0], 0.0f);
    std::fill(weights + span.counted_from, weights + span.count, 1.0f);
  }

 private:
  std::shared_ptr<const CutStream> cut_;
  DatasetInfo info_;
};

// The numbers of the documents in samples.
class DocumentNumbers final : public Dataset {
 public:
  explicit DocumentNumbers(std::shared_ptr<const CutStream> cut) : cut_(std::move(cut)) {
    info_.sample = {cut_->cut().positions};
    info_.target = {0};
    info_.dtype = DType::int32;
    info_.fingerprint = "documents of " + cut_->stream().fingerprint;
    if (cut_->stream().documents.size() == 0 && !cut_->cut().end_token) {
      data_error(cut_->stream().tokens.path, "does not tell where documents end, as `document_numbers` requires",
                 "set `tokenizer` and `end_token`, or use Megatron-LM's files, which have an index of documents");
    }
  }

  const DatasetInfo& info() const override { return info_; }
  std::int64_t size() const override { return cut_->size(); }
  bool in_memory() const override { return true; }
  std::int32_t label(std::int64_t) const override { return 0; }
  std::string name_of(std::int64_t index) const override { return span_name(*cut_, index); }

  void read(std::int64_t index, Sample& sample) const override {
    const TokenSpan span = cut_->span(index);
    std::int32_t* const numbers = sample.make_int32(info_.sample);
    cut_->stream().documents.size() > 0 ? number_by_ends(span, numbers) : number_by_tokens(span, numbers);
    // What fills a sample behaves like a document of its own.
    std::fill(numbers + span.count, numbers + info_.sample[0], span.count > 0 ? numbers[span.count - 1] + 1 : 0);
  }

 private:
  void number_by_ends(const TokenSpan& span, std::int32_t* numbers) const {
    const DocumentEnds& ends = cut_->stream().documents;
    const std::int64_t first = ends.document_of(span.begin);
    std::int64_t document = first;
    for (std::int64_t i = 0; i < span.count; ++i) {
      while (document < ends.size() && ends.end(document) <= span.begin + i) ++document;
      numbers[i] = static_cast<std::int32_t>(document - first);
    }
  }
  void number_by_tokens(const TokenSpan& span, std::int32_t* numbers) const {
    cut_->read(span.begin, span.count, numbers);
    std::int32_t document = 0;
    for (std::int64_t i = 0; i < span.count; ++i) {
      const bool ends = numbers[i] == *cut_->cut().end_token;
      numbers[i] = document;
      document += ends ? 1 : 0;
    }
  }

  std::shared_ptr<const CutStream> cut_;
  DatasetInfo info_;
};

}  // namespace

DatasetGroup language_dataset(TokenStream stream, const LanguageCut& cut, bool numbers) {
  const auto cut_stream = std::make_shared<const CutStream>(std::move(stream), cut);
  const auto tokens = std::make_shared<LanguageDataset>(cut_stream);
  DatasetGroup group{{tokens}, {tokens}};
  if (numbers) group.inputs.push_back(std::make_shared<DocumentNumbers>(cut_stream));
  return group;
}

}  // namespace trainctl
