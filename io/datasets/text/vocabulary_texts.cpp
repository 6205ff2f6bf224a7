// Finds the texts for a vocabulary, and reads those of .jsonl and .csv files in pieces.
#include "io/datasets/text/vocabulary_texts.h"

#include <memory>
#include <optional>
#include <utility>

#include "core/base/format.h"
#include "io/datasets/dataset.h"

namespace trainctl {
namespace {

// The structured files of all paths, and where they are read.
struct OpenTexts {
  Corpus corpus;
  CorpusFormat format;
  std::optional<CorpusPieces> pieces;
};

std::optional<Texts> next_texts(const std::shared_ptr<OpenTexts>& open) {
  const auto piece = std::make_shared<CorpusPiece>();
  if (!open->pieces->next(*piece)) return std::nullopt;
  return [open, piece](const std::function<void(std::string_view text, const std::string& place)>& visit) {
    for_each_text(*piece, open->format, [&](const CorpusText& text) {
      visit(text.text, format("{}, line {}", piece->file->path, text.line));
    });
  };
}

}  // namespace

VocabularyTexts find_vocabulary_texts(const std::vector<std::string>& paths, const CorpusFormat& format) {
  VocabularyTexts texts;
  const auto open = std::make_shared<OpenTexts>();
  open->format = format;
  with_all_errors(paths, [&](const std::string& path) {
    Corpus found = find_corpus(path);
    if (!found.token_files.empty()) {
      data_error(found.token_files[0], "holds tokens, not text", "give the text from which they were made");
    }
    for (CorpusFile& file : found.files) {
      if (file.kind == CorpusFileKind::plain) {
        texts.files.push_back(std::move(file.path));
      } else {
        open->corpus.files.push_back(std::move(file));
      }
    }
    if (!found.left_out.empty()) texts.left_out.push_back(std::move(found.left_out));
  });
  if (open->corpus.files.empty()) return texts;
  open->pieces.emplace(open->corpus, open->format, [](std::string_view, std::string_view) { return false; });
  texts.next = [open] { return next_texts(open); };
  return texts;
}

}  // namespace trainctl
