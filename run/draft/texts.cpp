// Writes configs for texts: a language model for a corpus, or a classifier for texts with classes.
#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include "core/base/file_names.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/json_parse.h"
#include "core/base/shell_words.h"
#include "core/base/table.h"
#include "io/datasets/images/image_files.h"
#include "io/datasets/text/corpus.h"
#include "io/datasets/text/labelled_texts.h"
#include "io/datasets/text/text_vectorization.h"
#include "run/draft/draft.h"
#include "run/draft/texts.h"

namespace trainctl {
namespace {

bool ends_like_text(const std::string& name) {
  return has_ending(name, {".txt", ".text", ".md", ".rst", ".jsonl", ".ndjson"});
}

bool ends_like_lines(const std::string& name) { return has_ending(name, {".jsonl", ".ndjson"}); }

TextSplits text_splits(const std::string& path) {
  if (!is_folder(path)) return {path, "", ""};
  const auto find = [&](const std::vector<std::string>& names) {
    for (const char* ending : {"", ".jsonl", ".txt"}) {
      std::vector<std::string> files;
      for (const std::string& name : names) files.push_back(name + ending);
      if (const std::string found = first_in_folder(path, files); !found.empty()) return found;
    }
    return std::string();
  };
  const std::string training = find(training_names());
  if (training.empty()) return {path, "", ""};
  return {training, find(validation_names()), find({"test"})};
}

bool holds_text_files(const std::string& folder) {
  const std::vector<FolderEntry> entries = list_folder(folder);
  return std::any_of(entries.begin(), entries.end(), [](const FolderEntry& entry) {
    return entry.type != FileType::folder && !is_system_name(entry.name) && ends_like_text(entry.name);
  });
}

// Whether a folder holds at least two folders of plain text and no text beside them: one folder for each class.
bool holds_class_folders(const std::string& path) {
  if (!is_folder(path)) return false;
  int folders = 0;
  for (const FolderEntry& entry : list_folder(path)) {
    if (is_system_name(entry.name)) continue;
    if (!is_folder(path + "/" + entry.name)) {
      if (ends_like_text(entry.name)) return false;
      continue;
    }
    const std::vector<FolderEntry> texts = list_folder(path + "/" + entry.name);
    if (std::any_of(texts.begin(), texts.end(), [](const auto& e) { return e.type == FileType::folder; })) return false;
    folders +=
        std::any_of(texts.begin(), texts.end(), [](const auto& e) { return has_ending(e.name, {".txt"}); }) ? 1 : 0;
  }
  return folders >= 2;
}

std::string first_key(const Json& object, std::initializer_list<const char*> names, bool (*fits)(const Json& value)) {
  for (const char* name : names) {
    const auto found = object.find(name);
    if (found != object.end() && fits(*found)) return name;
  }
  return "";
}

std::string first_of(const std::vector<std::string>& keys, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (std::find(keys.begin(), keys.end(), name) != keys.end()) return name;
  }
  return "";
}

// Throws Error{data} that names the keys of an object without a text. A list of messages, as of a conversation, becomes
// a text by a command.
[[noreturn]] void refuse_without_text(const std::string& path, const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  std::string remedy = "each line of a .jsonl file must be an object such as {\"text\": \"...\"}";
  const std::string list = first_of(keys, {"messages", "conversations", "conversation"});
  if (!list.empty() && object[list].is_array() && !object[list].empty() && object[list][0].is_object()) {
    const char* content = object[list][0].contains("value") ? "value" : "content";
    const char* role = object[list][0].contains("from") ? "from" : "role";
    remedy = format(
        "write each conversation as one text: jq -c '{{text: ([.{}[] | .{} + \": \" + .{}] | "
        "join(\"\\n\"))}}' {} > texts.jsonl",
        list, role, content, shell_word(path));
  }
  throw Error(ErrorKind::data, SourceLocation{path, 1},
              "the object holds no text" + (keys.empty() ? "" : "; its keys are: " + list_text(keys)), remedy);
}

TextKeys look_at_line(const std::string& path, const std::string& target) {
  constexpr std::int64_t longest = 1 << 20;
  std::string text(longest, '\0');
  text.resize(static_cast<std::size_t>(InputFile(path).read_some(0, text.data(), longest)));
  JsonFault fault;
  const std::string_view line = std::string_view(text).substr(0, text.find('\n'));
  const Json object = parse_json(line, fault);
  if (!object.is_object()) {
    const std::string problem = object.is_discarded() ? fault.problem : "it is " + json_kind(object);
    throw Error(ErrorKind::data, SourceLocation{path, 1, fault.column}, "the line is not an object of JSON: " + problem,
                remedy_for_json_line(path, line));
  }
  TextKeys keys;
  const auto is_text = [](const Json& value) { return value.is_string(); };
  const auto is_class = [](const Json& value) {
    return value.is_number_integer() || value.is_boolean() ||
           (value.is_string() && value.get_ref<const std::string&>().size() <= 40);
  };
  keys.text = first_key(object, {"text", "content", "body", "review", "sentence", "document"}, is_text);
  keys.class_name =
      !target.empty() ? target : first_key(object, {"label", "class", "category", "sentiment", "target"}, is_class);
  std::size_t most = 0;
  for (const auto& [key, value] : object.items()) {  // without a usual name, the longest text
    if (!keys.text.empty() && most == 0) break;
    if (!value.is_string() || value.get_ref<const std::string&>().size() <= most) continue;
    most = value.get_ref<const std::string&>().size();
    keys.text = key;
  }
  if (keys.text.empty()) refuse_without_text(path, object);
  for (const auto& [key, value] : object.items()) {
    if (key != keys.text && key != keys.class_name) keys.left_out.push_back(key);
  }
  return keys;
}

// What is read of the lines of JSON, and what is not; empty if everything is read. `used`: by the config.
std::vector<std::string> notes_on_lines(const std::string& path, const TextKeys& keys, bool classes) {
  std::vector<std::string> left_out = keys.left_out;
  if (!classes && !keys.class_name.empty()) left_out.push_back(keys.class_name);
  if (left_out.empty()) return {};
  std::string note = format("{}: '{}' of each line is read as the text{}, and {} left out", path, keys.text,
                            classes ? format(", and '{}' as its class", keys.class_name) : "",
                            (left_out.size() == 1 ? "the key " : "the keys ") + list_text(left_out) +
                                (left_out.size() == 1 ? " is" : " are"));
  const std::string answer = first_of(left_out, {"completion", "response", "answer", "output", "chosen"});
  if (!classes && !answer.empty()) {
    note += format(". To learn both, join them first: jq -c '{{text: (.{} + .{})}}' {} > joined.jsonl", keys.text,
                   answer, shell_word(path));
  }
  return {note};
}

// The paths of a `data` section, with a part of the training samples held out if there is no validation split.
std::string split_text(const DraftRequest& request, const TextSplits& splits, const char* held_out) {
  std::string text = format("  path: {}\n", path_text(request, splits.training));
  text += splits.validation.empty() ? format("  validation: {{{}}}\n", held_out)
                                    : format("  validation: {{path: {}}}\n", path_text(request, splits.validation));
  if (!splits.test.empty()) text += format("  test: {{path: {}}}\n", path_text(request, splits.test));
  return text;
}

// Bytes of a corpus, and positions of which it has at least some hundred samples.
Draft draft_language_model(const DraftRequest& request, const TextSplits& splits, const TextKeys& keys) {
  constexpr std::int64_t vocabulary = 257, longest = 128, shortest = 8, samples = 400, fewest_bytes = 400;
  const std::int64_t bytes = find_corpus(splits.training).bytes();
  if (bytes < fewest_bytes) {
    data_error(splits.training, format("holds {} of text, which is too little to learn from", byte_text(bytes)),
               format("give at least {}, better some hundred thousand", byte_text(fewest_bytes)));
  }
  std::int64_t positions = longest;
  while (positions > shortest && bytes / positions < samples) positions /= 2;
  const std::int64_t count = std::max<std::int64_t>(1, bytes / positions);
  Draft draft;
  draft.file = request.name + ".yaml";
  draft.summary = format("a language model of bytes on {} of text", byte_text(bytes));
  draft.text = head_text(draft.file, format("Text, {}: the network learns which byte follows.", byte_text(bytes))) +
               "data:\n  dataset: text\n" + split_text(request, splits, "split: 0.1") +
               (keys.text.empty() || keys.text == "text" ? "" : format("  text_column: {}\n", scalar_text(keys.text))) +
               format(
                   "  tokenizer: bytes               # or the path of a tokenizer.json, or of a SentencePiece model\n"
                   "  positions: {}\n"
                   "\nmodel:\n  layers:\n"
                   "    - embedding: {{input_dim: {}, output_dim: 64}}   # as many as the tokenizer has tokens\n"
                   "    - gru: {{units: 256, return_sequences: true}}\n"
                   "    - dense: {{units: {}, activation: softmax}}\n\n",
                   positions, vocabulary, vocabulary) +
               train_text("sparse_categorical_crossentropy", "accuracy", suitable_batch(count),
                          std::clamp<std::int64_t>(200'000 / count, 1, 20), 2e-3,
                          "  schedule: {name: cosine, warmup: 20 steps}\n");
  return draft;
}

// What the texts of a classifier hold.
struct ClassifiedLook {
  std::int64_t words = 0;  // a number of words that 19 of 20 texts do not exceed, from 8 to 500
  std::set<std::string> classes;
};

ClassifiedLook look_at_texts(const std::string& path, const TextKeys& keys) {
  const CorpusFormat format{keys.text.empty() ? "text" : keys.text, keys.class_name};
  const LabelledTexts read = read_labelled_texts(path, format, TextClasses::read, [] {
    return [](std::string_view text, const std::string&, WorkedText& worked) {
      worked.ids = {0};
      for_each_word(text, [&worked](std::string_view) { ++worked.ids[0]; });
    };
  });
  ClassifiedLook look;
  std::vector<TokenId> counts;
  for (const WorkedText& text : read.texts) {
    counts.push_back(text.ids[0]);
    look.classes.insert(text.class_name);
  }
  const auto usual = counts.begin() + static_cast<std::ptrdiff_t>(counts.size() * 19 / 20);
  std::nth_element(counts.begin(), usual, counts.end());
  look.words = std::clamp<std::int64_t>(*usual, 8, 500);
  return look;
}

// Throws Error{data} if the texts have one class only, or if their classes are numbers far apart: the network has an
// output for each number up to the largest one.
void check_classes(const std::string& path, const std::set<std::string>& classes) {
  constexpr std::int64_t most_unused = 1000;
  if (classes.size() < 2) {
    data_error(path, format("has one class only: '{}'", *classes.begin()),
               "a classifier learns to distinguish at least two classes: add texts of another class");
  }
  std::int64_t largest = 0;
  for (const std::string& name : classes) {
    std::int64_t number = -1;
    const auto [end, problem] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (problem != std::errc() || end != name.data() + name.size() || number < 0) return;
    largest = std::max(largest, number);
  }
  if (largest < std::ssize(classes) + most_unused) return;
  data_error(path, format("has {} classes, but their numbers go up to {}", classes.size(), largest),
             "number the classes from 0, or write them as names, such as 'c" + std::to_string(largest) + "'");
}

}  // namespace

Draft draft_text_classifier(const DraftRequest& request, const TextSplits& splits, const TextKeys& keys) {
  constexpr std::int64_t words = 10000;
  const ClassifiedLook look = look_at_texts(splits.training, keys);
  check_classes(splits.training, look.classes);
  const std::string columns = keys.class_name.empty() ? ""
                                                      : format("  text_column: {}\n  class_column: {}\n",
                                                               scalar_text(keys.text), scalar_text(keys.class_name));
  const std::string data = "data:\n  dataset: text_classification\n" +
                           split_text(request, splits, "split: 0.2, stratify: true") + columns +
                           format(
                               "  positions: {}                 # words of a sample\n"
                               "  max_tokens: {}              # the most frequent words of the training texts\n",
                               look.words, words);
  const DataInfo info = info_of(request, data, false);
  const TargetInfo& target = info.targets[0];
  const std::string classes = counted(target.classes, "class") +
                              (target.class_names.empty() ? "" : format(" ({})", list_text(target.class_names)));
  Draft draft;
  draft.file = request.name + ".yaml";
  draft.summary = format("a bag of words on texts, {}", counted(target.classes, "class"));
  draft.text = head_text(draft.file, format("Texts of {}: {}.", classes, samples_text(info))) + data +
               format(
                   "\nmodel:\n  layers:\n"
                   "    - embedding: {{input_dim: {}, output_dim: 32}}   # as many as max_tokens\n"
                   "    - global_average_pooling1d\n"
                   "    - dropout: 0.3\n"
                   "    - dense: {{units: {}, activation: softmax}}\n\n",
                   words, std::max<std::int64_t>(2, target.classes)) +
               train_text("sparse_categorical_crossentropy", "accuracy", suitable_batch(info.training_samples),
                          std::min<std::int64_t>(15, suitable_epochs(info.training_samples)), 3e-3,
                          "\ncheckpoint:\n  monitor: val_accuracy\n");
  return draft;
}

bool holds_text(const std::string& folder) {
  for (const FolderEntry& entry : list_folder(folder)) {
    if (is_system_name(entry.name)) continue;
    const std::string path = folder + "/" + entry.name;
    const bool found = entry.type == FileType::folder ? holds_text(path)
                       : entry.type == FileType::link && is_folder(path)
                           ? holds_text_files(path)  // a class; links below it are not followed
                           : ends_like_text(entry.name);
    if (found) return true;
  }
  return false;
}

bool is_text_file(const std::string& path) { return ends_like_text(path); }

std::vector<Draft> draft_for_text(const DraftRequest& request) {
  refuse_targets(request, "the targets of texts are tokens or classes");
  const TextSplits splits = text_splits(request.path);
  if (holds_class_folders(splits.training)) return {draft_text_classifier(request, splits, {})};
  TextKeys keys;
  const auto files = find_corpus(splits.training).files;
  const auto lines =
      std::find_if(files.begin(), files.end(), [](const auto& file) { return ends_like_lines(file.path); });
  if (lines != files.end()) keys = look_at_line(lines->path, request.target);
  const bool classes = !keys.class_name.empty() && std::all_of(files.begin(), files.end(), [](const auto& file) {
    return file.kind != CorpusFileKind::plain;
  });
  Draft draft = classes ? draft_text_classifier(request, splits, keys) : draft_language_model(request, splits, keys);
  if (lines != files.end()) {
    for (std::string& note : notes_on_lines(lines->path, keys, classes)) draft.notes.push_back(std::move(note));
  }
  return {std::move(draft)};
}

}  // namespace trainctl
