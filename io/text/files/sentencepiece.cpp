// Encodes by SentencePiece's library, and decodes piece by piece.
#include "io/text/files/sentencepiece.h"

#include <sentencepiece_processor.h>

#include "core/base/error.h"
#include "core/base/format.h"
#include "io/text/utf8_tail.h"

namespace trainctl {
namespace {

constexpr std::string_view space_mark = "\xe2\x96\x81";  // U+2581, which stands for a space in pieces
constexpr std::string_view two_marks = "\xe2\x96\x81\xe2\x96\x81";
const std::string sentencepiece_kind = "SentencePiece";

using Processor = sentencepiece::SentencePieceProcessor;

class SentencePieceEncoder final : public Encoder {
 public:
  explicit SentencePieceEncoder(const Processor& processor) : processor_(processor) {}

  void encode(std::string_view text, std::vector<TokenId>& ids, const std::string& name) override {
    require_utf8(text, name, sentencepiece_kind);
    const auto status = processor_.Encode({text.data(), text.size()}, &pieces_);
    if (!status.ok()) {
      throw Error(ErrorKind::data, SourceLocation{name},
                  format("SentencePiece cannot encode it: {}", status.ToString()),
                  "use another tokenizer for this text");
    }
    ids.insert(ids.end(), pieces_.begin(), pieces_.end());
  }

 private:
  const Processor& processor_;
  std::vector<int> pieces_;
};

// How the library shows the beginning of a text and the unknown token, which the model's options decide.
struct Shown {
  std::string unknown;            // what the unknown token is decoded to
  bool drops_first_mark = false;  // the space that begins a text is the model's own
  bool drops_more_marks = false;  // also those of further pieces that are nothing but this space
};

Shown shown_by(const Processor& processor) {
  Shown shown;
  if (processor.unk_id() >= 0) shown.unknown = processor.DecodeIds({processor.unk_id()});
  std::vector<int> ids;
  shown.drops_more_marks = processor.Encode(" ", &ids).ok() && ids.empty();
  for (int id = 0; id < processor.GetPieceSize(); ++id) {
    const std::string_view piece = processor.IdToPiece(id);
    if (!piece.starts_with(space_mark) || processor.IsControl(id) || processor.IsUnknown(id)) continue;
    shown.drops_first_mark = !processor.DecodeIds({id}).starts_with(' ') || piece.starts_with(two_marks);
    if (!piece.starts_with(two_marks)) break;
  }
  return shown;
}

class SentencePieceDecoder final : public Decoder {
 public:
  SentencePieceDecoder(const Processor& processor, const Shown& shown) : processor_(processor), shown_(shown) {}

  void decode(TokenId id, std::string& text) override {
    if (id < 0 || id >= processor_.GetPieceSize()) throw_no_token(id, processor_.GetPieceSize());
    if (processor_.IsControl(id)) return;
    if (processor_.IsUnknown(id)) {
      tail_.add(shown_.unknown, text);
      first_ &= shown_.unknown.empty();
      return;
    }
    const std::string& piece = processor_.IdToPiece(id);
    if (processor_.IsByte(id)) {
      const char byte = static_cast<char>(std::stoi(piece.substr(3, 2), nullptr, 16));
      tail_.add({&byte, 1}, text);
      first_ = false;
      return;
    }
    std::string_view rest = piece;
    std::string spaced;
    bool dropped = false;
    if (first_ && shown_.drops_first_mark && rest.starts_with(space_mark)) {
      rest.remove_prefix(space_mark.size());
      dropped = !shown_.drops_more_marks;
    }
    while (!rest.empty()) {
      const bool mark = rest.starts_with(space_mark);
      mark ? spaced += ' ' : spaced += rest.front();
      rest.remove_prefix(mark ? space_mark.size() : 1);
    }
    tail_.add(spaced, text);
    first_ &= spaced.empty() && !dropped;
  }

  void finish(std::string& text) override {
    tail_.finish(text);
    first_ = true;
  }

 private:
  const Processor& processor_;
  const Shown& shown_;
  Utf8Tail tail_;
  bool first_ = true;
};

class SentencePieceTokenizer final : public Tokenizer {
 public:
  SentencePieceTokenizer(std::string_view content, const std::string& path) {
    bool loaded = false;
    try {
      loaded = processor_.LoadFromSerializedProto({content.data(), content.size()}).ok();
    } catch (const std::exception&) {  // of the library's trie
    }
    if (!loaded) {
      throw Error(ErrorKind::data, SourceLocation{path},
                  format("begins like a model of SentencePiece, but its {} bytes are not a whole one", content.size()),
                  "download the file or copy it again");
    }
    for (int id = 0; id < processor_.GetPieceSize(); ++id) {
      if (processor_.IsControl(id) || processor_.IsUnknown(id)) special_.push_back({processor_.IdToPiece(id), id});
    }
    shown_ = shown_by(processor_);
  }

  std::string kind() const override { return sentencepiece_kind; }
  std::int64_t vocabulary_size() const override { return processor_.GetPieceSize(); }
  bool takes_any_bytes() const override { return false; }
  const std::vector<SpecialToken>& special_tokens() const override { return special_; }
  std::optional<TokenId> unknown_token() const override {
    return processor_.unk_id() < 0 ? std::nullopt : std::optional<TokenId>(processor_.unk_id());
  }
  const std::vector<TokenId>& ids_before() const override { return none_; }
  const std::vector<TokenId>& ids_after() const override { return none_; }
  std::unique_ptr<Encoder> make_encoder(SpecialText) const override {
    return std::make_unique<SentencePieceEncoder>(processor_);
  }
  std::unique_ptr<Decoder> make_decoder() const override {
    return std::make_unique<SentencePieceDecoder>(processor_, shown_);
  }

 private:
  Processor processor_;
  Shown shown_;
  std::vector<SpecialToken> special_;
  std::vector<TokenId> none_;
};

}  // namespace

bool looks_like_sentencepiece(std::string_view content) {
  // The first field of the message ModelProto is a piece: its tag, its length, and in it the tag of the piece's text.
  return content.size() > 3 && content[0] == '\x0a' && (content[2] == '\x0a' || content[3] == '\x0a');
}

std::unique_ptr<Tokenizer> read_sentencepiece(std::string_view content, const std::string& path) {
  return std::make_unique<SentencePieceTokenizer>(content, path);
}

}  // namespace trainctl
