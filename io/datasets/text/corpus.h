// A corpus: the files of text at a path, and their documents.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace trainctl {

// What the files of a corpus hold besides plain text.
struct CorpusFormat {
  std::string text_column = "text";  // the key of the text in .jsonl files, and its column in .csv files
  std::string class_column;          // of the name of the text's class; empty: texts have no classes
  // What to do if a file has no such text; empty: "set `text_column`".
  std::string text_remedy = {};
  std::string delimiter = ",";  // between the fields of .csv files, one character
};

// A file of plain text is one document, each line of an .jsonl file and each row of a .csv file is one. A byte order
// mark at the beginning of a file is not part of the text.
enum class CorpusFileKind { plain, json_lines, table };

struct CorpusFile {
  std::string path;
  CorpusFileKind kind = CorpusFileKind::plain;
  std::int64_t bytes = 0;
};

// A text and the name of its class. The views are valid while the function that gets them runs.
struct CorpusText {
  std::string_view text, class_name;
  std::int64_t line = 0;  // number in the file, from 1; 0 for a file that is one text
};

struct Corpus {
  std::string path;                      // of the file or folder
  std::vector<CorpusFile> files;         // of text, in bytewise order of their paths
  std::vector<std::string> token_files;  // .bin and .npy, in the same order
  std::string left_out;                  // says which files are not read; may be empty

  std::int64_t bytes() const;
};

// Finds the files at a path: the file itself, or all files of a folder and its subfolders. In a folder, hidden files
// and those that are not text (with a zero byte among the first 8,000, as git decides) are left out. Throws Error{data}
// if nothing is there, or if a folder holds both text and tokens.
Corpus find_corpus(const std::string& path);

// A row of a table: its text and the name of its class.
struct CorpusRow {
  std::string text, class_name;
  std::int64_t line = 0;
};

// A part of a corpus that one thread encodes: some whole documents, or a part of one.
struct CorpusPiece {
  const CorpusFile* file = nullptr;
  std::string content;          // bytes of the file: plain text, or whole lines
  std::int64_t offset = 0;      // of the content's first byte in the file
  std::int64_t line = 1;        // number of the content's first line, for .jsonl files
  std::vector<CorpusRow> rows;  // of .csv files, instead of `content`
  // Plain text: whether the document begins or ends with this piece.
  bool begins_document = true, ends_document = true;
};

// Whether a text may be cut after `before`: its tokens are those of the part before the cut and those of the part after
// it. Both are excerpts of at most some hundred bytes.
using CutTest = std::function<bool(std::string_view before, std::string_view after)>;

// Cuts a corpus into pieces of about one megabyte, always at the same places. Not thread-safe.
class CorpusPieces {
 public:
  // `corpus` and `format` must outlive the object.
  CorpusPieces(const Corpus& corpus, const CorpusFormat& format, CutTest may_cut);
  ~CorpusPieces();
  CorpusPieces(const CorpusPieces&) = delete;
  CorpusPieces& operator=(const CorpusPieces&) = delete;

  // Returns false after the last piece. Throws Error{data}.
  bool next(CorpusPiece& piece);

 private:
  struct OpenFile;

  void next_text(CorpusPiece& piece);
  void next_rows(CorpusPiece& piece);

  const Corpus& corpus_;
  const CorpusFormat& format_;
  CutTest may_cut_;
  std::size_t file_ = 0;
  std::unique_ptr<OpenFile> open_;
};

// What to do about a line of a .jsonl file that is not an object of JSON: the file may be a list of JSON, or have
// commas after its objects.
std::string remedy_for_json_line(const std::string& path, std::string_view line);

// Calls visit(text) for each text of a piece, in order. Throws Error{data} with file and line for a line that is not an
// object with the text and, if texts have classes, the class: a text, a whole number or a truth value.
void for_each_text(const CorpusPiece& piece, const CorpusFormat& format,
                   const std::function<void(const CorpusText& text)>& visit);

}  // namespace trainctl
