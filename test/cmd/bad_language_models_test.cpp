// Bad input of language models: each mistake in a config, a text, a tokenizer or a folder of Hugging Face is one error
// with its place and a remedy, from `check`, `run` and `import` alike.
#include <filesystem>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/files.h"

namespace trainctl::test::bad_language_models_test {
namespace {

namespace fs = std::filesystem;

const std::string golden = TRAINCTL_SOURCE_DIR "/test/golden/";

// A language model for 16 positions, the 257 tokens of bytes and two heads.
const std::string config = R"(
data: {dataset: text, path: good.txt, positions: 16, cache_path: cache}
model: {preset: gpt2, with: {vocabulary: 257, positions: 16, layers: 1, heads: 2, head_size: 4, width: 8, mlp: 8}}
train: {batch_size: 2, max_steps: 1, optimizer: adam, loss: {name: sparse_categorical_crossentropy, from_logits: true}}
)";

std::string beginning_of(const std::string& file, std::size_t bytes) {
  return read_file(golden + "tokenizers/" + file).substr(0, bytes);
}

// Writes the files that the rows name, all but good.txt with a mistake.
void write_files(const Folder& folder) {
  std::string good;
  for (int i = 0; i < 20; ++i) good += "one line of text\n";
  folder.write("good.txt", good);
  folder.write("empty.txt", "");
  folder.write("short.txt", "a word");
  folder.write("latin.txt", good + "caf\xe9\n");
  folder.write("empty/nothing.txt", "");
  folder.write("cut.jsonl", "{\"text\": \"one\"}\n{\"text\": \"two\n");
  folder.write("key.jsonl", "{\"text\": \"one\"}\n{\"body\": \"two\"}\n");
  folder.write("number.jsonl", "{\"text\": 2}\n");
  folder.write("latin.jsonl", "\n{\"text\": \"caf\xe9\"}\n");
  folder.write("quote.csv", "text\n\"one\n");
  const std::vector<std::uint16_t> ids(40, 256), large(40, 300);
  folder.write("ids.bin", raw(ids));
  folder.write("large.bin", raw(large));
  folder.write("odd.bin", raw(ids).substr(1));
  folder.write("unknown.json", "hello");
  folder.write("empty.json", " \n");
  folder.write("cut.json", beginning_of("gpt2.json", 1000));
  folder.write("magic.json", R"({"model": {"type": "Magic", "vocab": {"a": 0}}})");
  folder.write("cut.model", beginning_of("sp_bpe.model", 1000));
  folder.write("cut.tiktoken", beginning_of("small.tiktoken", 1001));
}

struct Row {
  std::vector<std::string> sets;
  int code;
  std::vector<std::string> words;  // of the error
};

// Runs the command, and checks that there is one line of errors with the words of the row.
void expect(const Folder& folder, std::vector<std::string> arguments, const Row& row) {
  for (const std::string& set : row.sets) arguments.insert(arguments.end(), {"--set", set});
  const Finished done = trainctl(folder, arguments);
  CAPTURE(arguments, done.errors);
  CHECK(done.code == row.code);
  CHECK(std::ranges::count(done.errors, '\n') == 1);
  for (const std::string& word : row.words) {
    CAPTURE(word);
    CHECK(contains(done.errors, word));
  }
}

}  // namespace

TEST_CASE("language models: each mistake is one error with place and remedy") {
  const Folder folder;
  write_files(folder);
  const std::string file = folder.write("lm.yaml", config);
  const std::string characters = "data.tokenizer=" + golden + "tokenizers/bert.json",
                    vocabulary = "model.with.vocabulary=1000";
  const std::vector<Row> rows{
      // The network.
      {{"data.positions=20"}, 2, {"gpt2.yaml", "has 20 positions, but sequence_length is 16", "positions: 20}`"}},
      {{"model={preset: llama, with: {vocabulary: 257, layers: 1, heads: 3, key_heads: 2, width: 8, mlp: 8}}"},
       2,
       {"llama.yaml", "3 heads of queries cannot share 2 heads of keys", "divide"}},
      {{"model={layers: [{embedding: {input_dim: 257, output_dim: 9}}, {transformer_encoder: {num_heads: 10, "
        "intermediate_dim: 8}}, {dense: {units: 257}}]}"},
       2,
       {"model", "vectors of length 9 cannot be divided among 10 heads", "use at most 9 heads"}},
      {{"model.with.vocabulary=200"}, 3, {"good.txt: token", "has the id 256", "vocabulary: 257}`"}},
      {{"model={layers: [{embedding: {input_dim: 257, output_dim: 8}}, {dense: {units: 200}}]}"},
       2,
       {"lm.yaml", "257 classes, but the network has 200 outputs", "give it an output for each class"}},
      // The tokenizer.
      {{"data.tokenizer=unknown.json"}, 3, {"unknown.json: this is no tokenizer file", "give a tokenizer.json"}},
      {{"data.tokenizer=empty.json"}, 3, {"empty.json: is empty; give a tokenizer.json"}},
      {{"data.tokenizer=absent.json"}, 3, {"absent.json: cannot be opened", "give the path"}},
      {{"data.tokenizer=empty"}, 3, {"empty: holds no tokenizer", "give the path"}},
      {{"data.tokenizer=cut.json"},
       3,
       {"cut.json:", ": not a valid tokenizer.json: ", "the text ends too early", "download"}},
      {{"data.tokenizer=magic.json"}, 3, {"magic.json", "the model 'Magic' is not supported"}},
      {{"data.tokenizer=cut.model"}, 3, {"cut.model: begins like a model of SentencePiece", "download"}},
      {{"data.tokenizer=cut.tiktoken"}, 3, {"cut.tiktoken"}},
      {{"data.end_token=<end>"}, 2, {"has no special token '<end>'", "its special tokens are: <|endoftext|>"}},
      // The text.
      {{"data.path=empty.txt"}, 3, {"empty.txt: is empty; give a file of text"}},
      {{"data.path=empty"}, 3, {"empty: holds no text; put text"}},
      {{"data.path=absent.txt"}, 3, {"absent.txt: cannot be opened"}},
      {{"data.path=short.txt"}, 3, {"short.txt: holds 7 tokens", "needs 17; use more text or fewer `positions`"}},
      {{"data.path=latin.txt", characters, vocabulary}, 3, {"latin.txt: byte 343 (0xe9) is not UTF-8", "iconv"}},
      {{"data.path=cut.jsonl"},
       3,
       {"cut.jsonl:2:14: the line is not an object of JSON: the text ends too early", "must be an object"}},
      {{"data.path=key.jsonl"}, 3, {"key.jsonl:2: the object has no key 'text'; its keys are: body", "text_column"}},
      {{"data.path=number.jsonl"}, 3, {"number.jsonl:1: the value of 'text' is not a text", "text_column"}},
      {{"data.path=latin.jsonl"}, 3, {"latin.jsonl:2: byte 13 of the line (0xe9) is not UTF-8", "iconv"}},
      {{"data.path=quote.csv"}, 3, {"quote.csv: line 2: a quotation mark is not closed", "close it"}},
      // Token files, also where the config states all shapes and classes.
      {{"data.path=large.bin"}, 3, {"large.bin: token 0 (at byte 0) has the id 300", "0 to 256; set the tokenizer"}},
      {{"data.path=large.bin", "data.classes=257"}, 3, {"large.bin: token 0", "the right number of `classes`"}},
      {{"data.path=odd.bin", "data.classes=257"}, 3, {"odd.bin: has 79 bytes", "copy the file again"}},
      {{"data.path=ids.bin", "data.classes=257", "train.metrics=[bits_per_byte]"},
       2,
       {"bits_per_byte needs tokens as targets whose text is known", "`tokenizer`"}},
  };
  for (const Row& row : rows) {
    expect(folder, {"check", file, "--ranks", "1"}, row);
    expect(folder, {"run", file, "--ranks", "1", "--run-dir", "run"}, row);
    CHECK_FALSE(fs::exists(folder / "run/checkpoints"));
  }
  // Data that is not on this host is described by the config; a file of tokens has no known text there either.
  const std::vector<std::string> absent{"check", file, "--set", "data.path=absent.bin", "--set", "data.classes=257"};
  CHECK(trainctl(folder, absent).code == 0);
  expect(folder, absent, {{"train.metrics=[bits_per_byte]"}, 2, {"bits_per_byte needs tokens as targets"}});
}

TEST_CASE("language models: a rank file of tiktoken of another size is read by the encoding that the config names") {
  const Folder folder;
  write_files(folder);
  const std::string file = folder.write("lm.yaml", config),
                    ranks = "data.tokenizer=" + golden + "tokenizers/small.tiktoken",
                    large = "model.with.vocabulary=100300";
  expect(folder, {"check", file}, {{ranks}, 3, {"which is none of tiktoken's encodings", "`data.encoding`"}});
  expect(folder, {"check", file},
         {{ranks, "data.encoding=gpt9"}, 2, {"no encoding of tiktoken is named 'gpt9'", "r50k_base"}});
  expect(folder, {"check", file},
         {{"data.encoding=cl100k_base"}, 2, {"`encoding` says how to read a rank file", "`tokenizer`"}});
  expect(folder, {"check", file},
         {{"data.tokenizer=" + golden + "tokenizers/bert.json", "data.encoding=cl100k_base", large},
          2,
          {"an encoding is named, but", "is no rank file"}});
  const auto run = [&](const std::string& encoding) {
    return trainctl(folder, {"run", file, "--ranks", "1", "--run-dir", encoding, "--set", ranks, "--set", large,
                             "--set", "data.encoding=" + encoding});
  };
  const auto cached = [&] { return std::distance(fs::directory_iterator(folder / "cache"), fs::directory_iterator()); };
  const Finished first = run("cl100k_base");
  INFO(first.errors);
  CHECK(first.code == 0);
  const auto files = cached();
  CHECK(files > 0);
  CHECK(run("gpt2").code == 0);  // another encoding cuts the text into other words
  CHECK(cached() > files);
}

TEST_CASE("language models: synthetic data makes tokens for networks that read them") {
  const Folder folder;
  const std::string file = folder.write("lm.yaml", config);
  const auto done = [&](std::vector<std::string> arguments, const std::string& data) {
    arguments.insert(arguments.begin() + 1, file);
    arguments.insert(arguments.end(), {"--set", "data={dataset: synthetic, shape: [16], samples: 40" + data + "}"});
    const Finished finished = trainctl(folder, arguments);
    CAPTURE(finished.errors);
    CHECK(finished.code == 0);
  };
  done({"check"}, "");
  done({"run", "--ranks", "1", "--run-dir", "next", "--set", "train.metrics=[accuracy, perplexity]"},
       ", validation: {split: 0.2}, test: {samples: 8}");
  done({"plan", "--machine", "h100-node"}, ", classes: 257");
  done({"run", "--ranks", "1", "--run-dir", "classes", "--set",
        "model={layers: [{embedding: {input_dim: 50, output_dim: 8}}, global_average_pooling1d, {dense: 3}]}"},
       ", classes: 3");
}

TEST_CASE("language models: byte-level vocabularies take any bytes, and unknown tokens are reported") {
  const Folder folder;
  write_files(folder);
  const std::string file = folder.write("lm.yaml", config);
  const Finished bytes = trainctl(folder, {"check", file, "--ranks", "1", "--set", "data.path=latin.txt"});
  CHECK(bytes.code == 0);
  CHECK_FALSE(contains(bytes.errors, "unknown token"));
  std::string text;
  for (int i = 0; i < 20; ++i) text += "one \u0e01\u0e02 line\n";  // no letter of the tokenizer's
  folder.write("thai.txt", text);
  const Finished lost =
      trainctl(folder, {"check", file, "--ranks", "1", "--set", "data.path=thai.txt", "--set",
                        "data.tokenizer=" + golden + "tokenizers/bert.json", "--set", "model.with.vocabulary=1000"});
  INFO(lost.errors);
  CHECK(lost.code == 0);
  CHECK(contains(lost.errors, "thai.txt: 20 of "));
  CHECK(contains(lost.errors, "bits_per_byte counts no bytes for them"));
}

TEST_CASE("language models: each mistake in a folder of Hugging Face is one error with place and remedy") {
  struct Damage {
    std::string name;
    std::function<void(const std::string& path)> apply;
    int code;
    std::vector<std::string> words;
  };
  const auto replaces = [](const std::string& from, const std::string& to) {
    return [=](const std::string& path) {
      std::string text = read_file(path);
      const std::size_t at = text.find(from);
      REQUIRE(at != std::string::npos);
      write_file(path, text.replace(at, from.size(), to));
    };
  };
  const auto cut = [](const std::string& path) { write_file(path, read_file(path).substr(0, 100)); };
  const auto removed = [](const std::string& path) { fs::remove(path); };
  const std::string shard = "model-00002-of-00004.safetensors", index = "model.safetensors.index.json";
  const std::vector<Damage> damages{
      {"config.json", replaces("\"qwen3\"", "\"mamba\""), 2, {"config.json", "'mamba'; there are presets for bert"}},
      {"config.json", replaces("\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3"), 2, {"does not divide"}},
      {"config.json", cut, 3, {"config.json:", ": is not JSON: the text ends too early; copy the whole folder"}},
      {"config.json", removed, 3, {"config.json: cannot be opened", "copy the whole folder"}},
      {index, cut, 3, {index + ":", ": is not JSON: the text ends too early; copy the whole folder"}},
      {index, removed, 3, {"holds no weights", "copy the whole folder"}},
      {shard, cut, 3, {shard + ": not a valid safetensors file", "in a file of 100; copy the file again"}},
      {shard, removed, 3, {index + ": the shard '" + shard + "' is missing", "copy the whole folder"}},
  };
  for (const Damage& damage : damages) {
    const Folder folder;
    fs::copy(golden + "hugging_face/qwen3", folder / "net");
    fs::permissions(folder / ("net/" + damage.name), fs::perms::owner_write, fs::perm_options::add);
    damage.apply(folder / ("net/" + damage.name));
    expect(folder, {"import", "net", "-o", "out"}, {{}, damage.code, damage.words});
    CHECK_FALSE(fs::exists(folder / "out/net.yaml"));
  }
  const Folder folder;
  fs::copy(golden + "hugging_face/qwen3", folder / "net");
  folder.write("net/tokenizer.json", beginning_of("gpt2.json", 1000));
  const Finished done = trainctl(folder, {"import", "net", "-o", "out"});
  CHECK(done.code == 0);
  CHECK(contains(done.errors + done.out, ": not a valid tokenizer.json: "));
}

}  // namespace trainctl::test::bad_language_models_test
