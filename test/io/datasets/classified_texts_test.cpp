// Tests the data set of texts with classes: vocabularies and numbers against Keras' TextVectorization, and samples of
// tokenizers against the ids of the texts.
#include <filesystem>

#include "core/base/json.h"
#include "core/base/json_parse.h"
#include "io/datasets/text/text_vectorization.h"
#include "io/loader/prediction_data.h"
#include "test/io/datasets/corpus_support.h"

namespace trainctl::test::classified_texts_test {
namespace {

const std::string kind = "text_classification";

std::string golden(const std::string& name) { return std::string(TRAINCTL_SOURCE_DIR) + "/test/golden/" + name; }

// How a model uses the data: class numbers, and an embedding with `tokens` rows.
DataUse use_of(std::int64_t tokens = 0) {
  DataUse use = token_use(tokens);
  use.targets[0].class_numbers = true;
  return use;
}

std::string line_of(const std::string& text, const Json& label) {
  return json_text(Json{{"text", text}, {"label", label}}) + "\n";
}

}  // namespace

TEST_CASE("text_classification: words have the numbers of Keras' TextVectorization") {
  const Json cases = parse_json(read_whole(golden("text_vectorization.json")), {}).at("cases");
  REQUIRE(cases.size() == 6);
  for (const Json& one : cases) {
    const TempFolder folder;
    std::string training, held_out;
    for (const std::string text : one.at("training")) training += line_of(text, text.size() % 2);
    for (const std::string text : one.at("texts")) held_out += line_of(text, text.size() % 2);
    write_file(folder / "training.jsonl", training);
    write_file(folder / "held_out.jsonl", held_out);
    const std::string max_tokens =
        one.at("max_tokens").is_null() ? "" : format(", max_tokens: {}", one.at("max_tokens").get<int>());
    const OpenedText opened(folder,
                            format("path: {}, positions: {}, standardize: {}{}, validation: {{path: {}}}",
                                   folder / "training.jsonl", one.at("positions").get<int>(),
                                   one.at("standardize").get<std::string>(), max_tokens, folder / "held_out.jsonl"),
                            use_of(), kind);
    CAPTURE(one.at("standardize").get<std::string>(), max_tokens);
    std::vector<std::string> vocabulary = {"", "[UNK]"};
    const auto& words = *opened.data.kept_inputs()[0].info.vocabulary;
    vocabulary.insert(vocabulary.end(), words.begin(), words.end());
    CHECK(vocabulary == one.at("vocabulary").get<std::vector<std::string>>());
    const auto rows = opened.rows(SplitKind::validation);
    const auto numbers = one.at("numbers").get<std::vector<std::vector<std::int32_t>>>();
    REQUIRE(rows.size() == numbers.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      CHECK(rows[i].inputs[0] == numbers[i]);
      CHECK(rows[i].classes[0] == static_cast<int>(one.at("texts")[i].get<std::string>().size() % 2));
    }
  }
}

TEST_CASE("text_classification: folders of classes, a table and lines of JSON give the same samples") {
  const TempFolder folder;
  std::string lines, table = "label,id,text\n";
  std::vector<std::pair<std::string, std::string>> texts;
  for (unsigned i = 0; i < 24; ++i) {
    const std::string name = i < 10 ? "bad" : i < 17 ? "good" : "so so";
    texts.emplace_back(name, random_text(200, i));
    write_file(folder / format("t/{}/{:02}.txt", name, i), texts.back().second);
    lines += line_of(texts.back().second, name);
    std::string quoted;
    for (const char byte : texts.back().second) quoted += byte == '"' ? "\"\"" : std::string(1, byte);
    table += format("{},{},\"{}\"\n", name, i, quoted);
  }
  write_file(folder / "t.jsonl", lines);
  write_file(folder / "t.csv", table);
  write_file(folder / "t/good/.hidden", "x");
  const std::vector<std::string> tokenizers = {"", ", tokenizer: bytes",
                                               ", tokenizer: " + golden("tokenizers/bert.json")};
  for (const std::string& tokenizer : tokenizers) {
    std::vector<std::vector<OpenedText::Row>> found;
    for (const char* path : {"t", "t.jsonl", "t.csv"}) {
      const OpenedText opened(folder, format("path: {}, positions: 40{}", folder / path, tokenizer), use_of(), kind);
      CHECK(opened.data.info().targets[0].class_names == std::vector<std::string>{"bad", "good", "so so"});
      CHECK(opened.data.info().targets[0].classes == 3);
      CHECK(opened.data.info().inputs[0].sample == Shape{40});
      CHECK_FALSE(opened.data.info().is_masked);
      found.push_back(opened.rows());
    }
    REQUIRE(found[0].size() == texts.size());
    for (std::size_t i = 0; i < texts.size(); ++i) {
      for (const auto& rows : found) {
        CHECK(rows[i].inputs == found[0][i].inputs);
        CHECK(rows[i].classes[0] == (texts[i].first == "bad" ? 0 : texts[i].first == "good" ? 1 : 2));
        CHECK(rows[i].weights == std::vector<float>{1});
      }
      if (tokenizer.empty()) continue;
      const bool bytes = tokenizer == ", tokenizer: bytes";
      const auto loaded = load_tokenizer(bytes ? "bytes" : golden("tokenizers/bert.json"));
      std::vector<std::int32_t> ids = loaded->ids_before();
      const std::vector<TokenId> of_text = ids_of(*loaded, texts[i].second);
      const std::size_t most = 40 - loaded->ids_after().size();
      for (const TokenId id : of_text) {
        if (ids.size() < most) ids.push_back(id);
      }
      ids.insert(ids.end(), loaded->ids_after().begin(), loaded->ids_after().end());
      CHECK((bytes || (ids.front() != of_text.front() && ids.back() != of_text.back())));  // [CLS] and [SEP]
      ids.resize(40, 0);
      CHECK(found[0][i].inputs[0] == ids);
    }
  }
}

TEST_CASE("text_classification: the vocabulary is that of the training split alone, and prediction uses it") {
  const TempFolder folder;
  std::string lines;
  for (int i = 0; i < 40; ++i) lines += line_of(format("all word{} word{}", i, i % 3), i % 2 == 0 ? "even" : "odd");
  write_file(folder / "t.jsonl", lines);
  const std::string yaml =
      format("path: {}, positions: 4, validation: {{split: 0.25, stratify: true}}", folder / "t.jsonl");
  const OpenedText opened(folder, yaml, use_of(), kind);
  const auto& words = *opened.data.kept_inputs()[0].info.vocabulary;
  CHECK(words.size() >= 1 + 30);
  CHECK(words[0] == "all");
  for (const auto& row : opened.rows()) CHECK(std::count(row.inputs[0].begin(), row.inputs[0].end(), 1) == 0);
  int unknown = 0;
  for (const auto& row : opened.rows(SplitKind::validation)) {
    unknown += static_cast<int>(std::count(row.inputs[0].begin(), row.inputs[0].end(), 1));
  }
  CHECK(unknown >= 7);

  write_file(folder / "new.txt", "all word7\n\nunseen ALL, all.\nword1");
  const std::string kept = write_kept_inputs(opened.data.kept_inputs());
  const auto options = data_options(format("{{dataset: {}, {}}}", kind, yaml));  // must outlive `data`
  const PredictionData data(options, read_kept_inputs(kept), {DataUse::Input{}}, {folder / "new.txt"});
  REQUIRE(data.samples() == 4);  // an empty line is a text without words
  const auto batches = data.batches(4, {}, 1, {});
  const Batch& batch = batches->next();
  const auto number = [&](const std::string& word) {
    return static_cast<std::int32_t>(std::find(words.begin(), words.end(), word) - words.begin()) + 2;
  };
  const std::int32_t one = number("word1"),
                     seven = std::count(words.begin(), words.end(), "word7") ? number("word7") : 1;
  const std::vector<std::int32_t> expected = {2, seven, 0, 0, 0, 0, 0, 0, 1, 2, 2, 0, one, 0, 0, 0};
  CHECK(std::vector<std::int32_t>(batch.inputs[0].as<std::int32_t>(), batch.inputs[0].as<std::int32_t>() + 16) ==
        expected);
}

TEST_CASE("text_classification: whole numbers are classes by themselves") {
  const TempFolder folder;
  write_file(folder / "t.jsonl", line_of("a", 3) + line_of("b", 0) + line_of("c", "1"));
  const OpenedText opened(folder, format("path: {}, positions: 2", folder / "t.jsonl"), use_of(), kind);
  CHECK(opened.data.info().targets[0].classes == 4);
  CHECK(opened.data.info().targets[0].class_names.empty());
  CHECK(opened.rows()[0].classes[0] == 3);
}

TEST_CASE("text_classification: what cannot be read is refused with file, place and remedy") {
  const TempFolder folder;
  const auto refused = [&](const std::string& name, const std::string& content, const std::string& more = "",
                           std::int64_t tokens = 0, ErrorKind error = ErrorKind::data) {
    write_file(folder / name, content);
    return text_error(folder, format("path: {}, positions: 4{}", folder / name, more), error, use_of(tokens), kind);
  };
  const std::string good = line_of("one two", "x") + line_of("two three", "y");
  CHECK(contains(refused("a.jsonl", good + "{\"text\": \"z\"}\n"), "a.jsonl:3: the object has no key 'label'"));
  CHECK(contains(refused("a.jsonl", good + line_of("z", 1.5)), "'label' is not a text or a whole number"));
  CHECK(contains(refused("a.jsonl", good + line_of("z", "")), "a.jsonl, line 3: the text has no class"));
  CHECK(contains(refused("a.csv", "text,sentiment\nx,1\n"), "no column 'label'; its columns are: text, sentiment"));
  CHECK(contains(refused("a.csv", "text,label\nx,1\n,\n"), "a.csv, line 3: the text has no class"));
  CHECK(contains(refused("a.csv", "text,label\nx,1\ncaf\xe9,0\n"), "line 3: byte 3 of the text is not UTF-8"));
  CHECK(contains(refused("a.txt", "text"), "a.txt: is plain text, whose class is unknown"));
  CHECK(contains(refused("a.jsonl", good, "", 4), "has a vocabulary of 5 tokens, but the embedding has 4 rows"));
  CHECK(contains(refused("a.jsonl", good, ", tokenizer: bytes", 256), "vocabulary of 257 tokens"));
  CHECK(contains(refused("a.jsonl", good, ", classes: 3"), "has 2 classes, but the config sets 3"));
  CHECK(contains(refused("a.jsonl", line_of("a", 2), ", classes: 2"), "has the class '2', which is not below"));
  write_file(folder / "b.jsonl", line_of("a", "x") + line_of("a", "z"));
  CHECK(contains(refused("a.jsonl", good, format(", validation: {{path: {}}}", folder / "b.jsonl")),
                 "b.jsonl, line 2: has the class 'z', which is not in the training split"));
  CHECK(contains(refused("a.jsonl", good, ", tokenizer: bytes, max_tokens: 5", 0, ErrorKind::config),
                 "max_tokens is for numbered words"));
  std::filesystem::create_directories(folder / "c/empty");
  write_file(folder / "c/full/1.txt", "text");
  CHECK(contains(text_error(folder, format("path: {}, positions: 4", folder / "c"), ErrorKind::data, use_of(), kind),
                 "c/empty: holds no text"));
}

}  // namespace trainctl::test::classified_texts_test
