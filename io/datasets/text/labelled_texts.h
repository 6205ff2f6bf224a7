// Texts with the names of their classes, read on all cores.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "io/datasets/text/corpus.h"
#include "io/text/tokenizer.h"

namespace trainctl {

// A text after the work on it: its ids, or the standardized text.
struct WorkedText {
  std::vector<TokenId> ids;
  std::string text;
  std::string class_name;  // empty: unknown, for prediction
  std::size_t file = 0;    // index in LabelledTexts::files
  std::int64_t line = 0;   // number of its line in the file, 0 for a whole file
};

struct LabelledTexts {
  std::vector<std::string> files;  // paths
  std::vector<WorkedText> texts;   // in the order of the files and their lines
  std::string left_out;            // says which files are not read; may be empty

  // Names a text for messages: "reviews.csv, line 12".
  std::string place_of(const WorkedText& text) const;
};

// Does the work on a text: sets its ids or its text. `place` names the text for errors.
using TextWork = std::function<void(std::string_view text, const std::string& place, WorkedText& worked)>;

// What is read: texts with classes for training and evaluation, or texts alone.
enum class TextClasses { read, absent };

// Reads the texts at a path: a .jsonl or .csv file, or a folder of such files; or a folder that holds a folder of files
// of text for each class. Without classes, each line of a file of plain text is a text, which may be empty, so that the
// results have a row for each line. `make_work` is called once in each thread. Throws Error{data} for files that cannot
// be read, and for a text without a class.
LabelledTexts read_labelled_texts(const std::string& path, const CorpusFormat& format, TextClasses classes,
                                  const std::function<TextWork()>& make_work);

}  // namespace trainctl
