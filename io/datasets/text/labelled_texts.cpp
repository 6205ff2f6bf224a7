// Reads texts and their classes.
#include "io/datasets/text/labelled_texts.h"

#include <algorithm>
#include <map>
#include <optional>

#include "core/base/files.h"
#include "core/base/format.h"
#include "io/datasets/arrays/bytes.h"
#include "io/datasets/class_folders.h"
#include "io/datasets/dataset.h"
#include "io/datasets/images/image_files.h"
#include "io/datasets/text/ordered_work.h"
#include "io/datasets/usable_cores.h"
#include "io/datasets/utf8_names.h"

namespace trainctl {
namespace {

// The files of texts, and the class of each file of plain text.
struct ClassFiles {
  Corpus corpus;
  std::vector<std::string> classes;  // for each file; empty for files of several texts
};

// Adds the files of a folder; all of them are plain text if they have a class.
void add_class_files(const std::string& path, const std::string& class_name, ClassFiles& files) {
  Corpus found = find_corpus(path);
  if (found.files.empty()) data_error(path, "holds tokens, not text", "classes are for texts");
  for (CorpusFile& file : found.files) {
    if (!class_name.empty()) file.kind = CorpusFileKind::plain;
    files.corpus.files.push_back(std::move(file));
    files.classes.push_back(class_name);
  }
  if (!found.left_out.empty()) files.corpus.left_out += (files.corpus.left_out.empty() ? "" : "; ") + found.left_out;
}

ClassFiles find_class_files(const std::string& path, TextClasses classes) {
  ClassFiles files;
  files.corpus.path = path;
  const std::vector<std::string> folders =
      classes == TextClasses::read && is_folder(path, data_role) ? class_folders(path) : std::vector<std::string>();
  if (folders.empty()) {
    add_class_files(path, "", files);
  } else {
    with_all_errors(folders, [&](const std::string& name) { add_class_files(path + "/" + name, name, files); });
  }
  for (std::size_t i = 0; i < files.corpus.files.size() && folders.empty() && classes == TextClasses::read; ++i) {
    const CorpusFile& file = files.corpus.files[i];
    if (file.kind != CorpusFileKind::plain) continue;
    data_error(file.path, "is plain text, whose class is unknown",
               "give a .jsonl or .csv file with a class for each text, or put the texts of each class into a folder");
  }
  return files;
}

// The texts of a piece after the work.
std::vector<WorkedText> work_on(const CorpusPiece& piece, const CorpusFormat& format, std::size_t file,
                                const std::string& class_name, TextClasses classes, const TextWork& work) {
  std::vector<WorkedText> found;
  const auto add = [&](std::string_view text, std::string_view name, std::int64_t line) {
    WorkedText& worked = found.emplace_back();
    worked.class_name = class_name.empty() ? name : class_name;
    worked.file = file;
    worked.line = line;
    const std::string place = piece.file->path + (line > 0 ? trainctl::format(", line {}", line) : "");
    if (classes == TextClasses::read && worked.class_name.empty()) {
      data_error(place, "the text has no class", "correct the line, or leave it out");
    }
    work(text, place, worked);
  };
  if (piece.file->kind != CorpusFileKind::plain || classes == TextClasses::read) {
    for_each_text(piece, format, [&](const CorpusText& text) { add(text.text, text.class_name, text.line); });
    return found;
  }
  const std::string_view text = piece.content;
  std::int64_t line = 1;
  for (std::size_t at = 0; at < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view content = text.substr(at, end - at);
    if (content.ends_with('\r')) content.remove_suffix(1);
    add(content, "", line);
    at = end + 1;
  }
  return found;
}

}  // namespace

std::string LabelledTexts::place_of(const WorkedText& text) const {
  return files[text.file] + (text.line > 0 ? format(", line {}", text.line) : "");
}

LabelledTexts read_labelled_texts(const std::string& path, const CorpusFormat& format, TextClasses classes,
                                  const std::function<TextWork()>& make_work) {
  const ClassFiles files = find_class_files(path, classes);
  CorpusFormat columns = format;
  if (classes == TextClasses::absent) columns.class_column.clear();
  LabelledTexts read;
  std::map<const CorpusFile*, std::size_t> numbers;
  for (const CorpusFile& file : files.corpus.files) {
    numbers[&file] = read.files.size();
    read.files.push_back(file.path);
  }
  read.left_out = files.corpus.left_out;
  CorpusPieces pieces(files.corpus, columns, [](std::string_view, std::string_view) { return false; });
  work_in_order(
      usable_cores(),
      [&]() -> std::optional<CorpusPiece> {
        CorpusPiece piece;
        return pieces.next(piece) ? std::optional(std::move(piece)) : std::nullopt;
      },
      [&] {
        return [&, work = make_work()](CorpusPiece& piece) {
          const std::size_t number = numbers.at(piece.file);
          return work_on(piece, columns, number, files.classes[number], classes, work);
        };
      },
      [&](std::vector<WorkedText>& found) {
        read.texts.insert(read.texts.end(), std::make_move_iterator(found.begin()),
                          std::make_move_iterator(found.end()));
      });
  if (read.texts.empty()) data_error(path, "holds no texts");
  return read;
}

}  // namespace trainctl
