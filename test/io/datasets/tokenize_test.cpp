// Tests that a corpus, tokenized in pieces on several cores, has the ids that its tokenizer gives for whole texts, and
// that text and token files that cannot be used are refused with their place.
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "core/base/json.h"
#include "io/checkpoint/atomic_file.h"
#include "io/datasets/preparation.h"
#include "io/datasets/text/token_cache.h"
#include "io/datasets/text/token_file.h"
#include "io/text/train/train.h"
#include "test/io/datasets/corpus_support.h"

namespace trainctl::test::tokenize_test {
namespace {

// All ids of the token file of a corpus.
std::vector<std::int32_t> all_ids(const TokenStream& stream) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(stream.count()));
  read_tokens(stream, 0, stream.count(), 1 << 30, "the test", "", ids.data());
  return ids;
}

std::string golden(const char* name) { return std::string(TRAINCTL_SOURCE_DIR) + "/test/golden/tokenizers/" + name; }

}  // namespace

TEST_CASE("tokenized in pieces, a corpus has the ids of its whole texts") {
  const TempFolder folder;
  const std::string large = random_text(3'400'000, 1), small = random_text(5000, 2);
  write_file(folder / "t/a.txt", large);
  std::vector<std::string> texts = {large};
  std::string lines, table = "\"n\",\"text\"\n";
  for (unsigned i = 0; i < 700; ++i) {
    const std::string text = random_text(i % 20 == 0 ? 40'000 : 100, 50 + i);
    lines += json_text(Json{{"text", text}, {"id", i}}) + (i % 3 == 0 ? "\r\n\n" : "\n");
    texts.push_back(text);
  }
  for (unsigned i = 0; i < 300; ++i) {
    std::string text = random_text(i % 20 == 0 ? 40'000 : 100, 1500 + i), quoted;
    texts.push_back(text);
    for (const char byte : text) quoted += byte == '"' ? "\"\"" : std::string(1, byte);
    table += format("{},\"{}\"\n", i, quoted);
  }
  write_file(folder / "t/b.jsonl", lines);
  write_file(folder / "t/c.csv", table);
  write_file(folder / "t/d.txt", small);
  texts.push_back(small);

  write_file(folder / "train.txt", random_text(200'000, 5));
  write_file(
      folder / "bpe.json",
      train_tokenizer({.files = {folder / "train.txt"}, .vocabulary_size = 700, .special_tokens = {"<|endoftext|>"}})
          .json);
  std::vector<TokenizerName> names = {NamedTokenizer::bytes, Path{folder / "bpe.json"}};
  names.push_back(Path{golden("sp_unigram.model")});
  for (const TokenizerName& name : names) {
    const Tokenization tokenization{.tokenizer = open_tokenizer(name),
                                    .begin_token = begin_token_of(open_tokenizer(name), "auto"),
                                    .end_token = end_token_of(open_tokenizer(name), "auto"),
                                    .special = SpecialText::plain,
                                    .format = {}};
    CAPTURE(tokenization.tokenizer.path);
    std::vector<TokenId> expected;
    std::vector<std::int64_t> ends;
    const auto encoder = tokenization.tokenizer.tokenizer->make_encoder(SpecialText::plain);
    for (const std::string& text : texts) {
      if (tokenization.begin_token) expected.push_back(*tokenization.begin_token);
      encoder->encode(text, expected);
      if (tokenization.end_token) expected.push_back(*tokenization.end_token);
      ends.push_back(std::ssize(expected));
    }
    const Corpus corpus = find_corpus(folder / "t");
    const TokenStream stream = cached_tokens(corpus, tokenization, {folder / "cache"});
    CHECK(stream.count() == std::ssize(expected));
    CHECK(all_ids(stream) == expected);
    CHECK(stream.largest == *std::max_element(expected.begin(), expected.end()));
    REQUIRE(stream.documents.size() == std::ssize(ends));
    for (std::int64_t d = 0; d < stream.documents.size(); ++d) {
      CHECK(stream.documents.end(d) == ends[static_cast<std::size_t>(d)]);
    }
  }
}

TEST_CASE("a byte order mark is not text, and the delimiter separates the fields of tables") {
  const TempFolder folder;
  const std::string mark = "\xEF\xBB\xBF", large = random_text(1'500'000, 7), small = random_text(500, 8);
  write_file(folder / "t/a.txt", mark + large);
  write_file(folder / "t/b.jsonl", mark + json_text(Json{{"text", small}}) + "\n");
  write_file(folder / "t/c.csv", mark + "id;text\n1;one, two\n2;three\n");
  Tokenization tokenization{.tokenizer = open_tokenizer(NamedTokenizer::bytes),
                            .begin_token = {},
                            .end_token = end_token_of(open_tokenizer(NamedTokenizer::bytes), "auto"),
                            .special = SpecialText::plain,
                            .format = {.delimiter = ";"}};
  std::vector<std::int32_t> expected;
  for (const std::string& text : {large, small, std::string("one, two"), std::string("three")}) {
    for (const char byte : text) expected.push_back(static_cast<unsigned char>(byte));
    expected.push_back(*tokenization.end_token);
  }
  const Corpus corpus = find_corpus(folder / "t");
  CHECK(all_ids(cached_tokens(corpus, tokenization, {folder / "cache"})) == expected);
  tokenization.format.delimiter = ",";
  CHECK_THROWS_WITH(cached_tokens(corpus, tokenization, {folder / "cache"}), Catch::Contains("set `delimiter: \";\"`"));
}

TEST_CASE("several processes that need the same tokens make them once") {
  const TempFolder folder;
  write_file(folder / "t.txt", random_text(2'000'000, 4));
  const Corpus corpus = find_corpus(folder / "t.txt");
  const Tokenization tokenization{.tokenizer = open_tokenizer(NamedTokenizer::bytes), .format = {}};
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      bool made = false;
      const TokenStream stream =
          cached_tokens(corpus, tokenization, {folder / "cache", [&](std::int64_t, std::int64_t) { made = true; }});
      _exit(stream.count() == corpus.bytes() ? (made ? 11 : 10) : 1);
    }
    children.push_back(child);
  }
  int makers = 0;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) >= 10);
    makers += WEXITSTATUS(status) == 11 ? 1 : 0;
  }
  CHECK(makers == 1);
}

TEST_CASE("a process that is killed while it tokenizes leaves no token file, and the next one removes what it left") {
  const TempFolder folder;
  write_file(folder / "t.txt", random_text(3'000'000, 4));
  const Corpus corpus = find_corpus(folder / "t.txt");
  const Tokenization tokenization{.tokenizer = open_tokenizer(NamedTokenizer::bytes), .format = {}};
  const pid_t child = fork();
  if (child == 0) {
    cached_tokens(corpus, tokenization, {folder / "cache", [](std::int64_t, std::int64_t) { raise(SIGKILL); }});
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(WIFSIGNALED(status));
  const auto files = [&] {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder / "cache")) {
      names.push_back(entry.path().filename().string().substr(0, 7));
    }
    std::sort(names.begin(), names.end());
    return names;
  };
  CHECK(files() == std::vector<std::string>{".partia", "tokens-"});  // the unfinished file and the lock
  CHECK(cached_tokens(corpus, tokenization, {folder / "cache"}).count() == corpus.bytes());
  CHECK(files() == std::vector<std::string>{"tokens-"});
}

TEST_CASE("text: what cannot be read is refused with file, place and remedy") {
  const TempFolder folder;
  const auto refused = [&](const std::string& name, const std::string& content, const std::string& more = "") {
    write_file(folder / name, content);
    return text_error(folder, format("path: {}, positions: 8{}", folder / name, more));
  };
  const std::string long_line = R"({"text": "0123456789"})"
                                "\n";
  CHECK(contains(refused("empty.txt", ""), "empty.txt: is empty"));
  CHECK(contains(refused("short.txt", "abc"), "holds 4 tokens, but a sample of 8 positions and their targets needs 9"));
  CHECK(contains(refused("zero.txt", std::string("a\0b", 3)), "zero.txt: is not text: it holds a zero byte"));
  CHECK(contains(refused("a.jsonl", long_line + "{\"text\": 'x'}\n"),
                 "a.jsonl:2:10: the line is not an object of JSON: the character '\'' is not expected here"));
  CHECK(contains(refused("b.jsonl", long_line + "\n[1]\n"),
                 "b.jsonl:3: the line is not an object of JSON: it is a list"));
  CHECK(contains(refused("list.jsonl", "[\n{\"text\": \"abc\"},\n{\"text\": \"d\"}\n]\n"),
                 "if the file is a list of objects, write each as a line: jq -c '.[]' "));
  CHECK(contains(refused("commas.jsonl", "{\"text\": \"abc\"},\n{\"text\": \"d\"},\n"),
                 "leave out the commas after the objects: sed -E 's/,[[:space:]]*$//' "));
  CHECK(contains(refused("wide.txt", std::string("\xff\xfe"
                                                 "a\0b\0c\0",
                                                 8)),
                 "wide.txt: is text in the encoding UTF-16, but must be UTF-8; convert it: iconv -f UTF-16 -t UTF-8 "));
  CHECK(contains(refused("c.jsonl", long_line + "{\"body\": \"x\", \"id\": 1}\n"),
                 "c.jsonl:2: the object has no key 'text'; its keys are: body, id"));
  CHECK(contains(refused("d.jsonl", "{\"text\": 5}\n"), "d.jsonl:1: the value of 'text' is not a text"));
  CHECK(contains(refused("e.jsonl", long_line + "{\"text\": \"\xe9\"}\n"),
                 "e.jsonl:2: byte 10 of the line (0xe9) is not UTF-8"));
  CHECK(contains(refused("a.csv", "a,b\n1,2\n"), "a.csv: has no column 'text'; its columns are: a, b"));
  CHECK(contains(refused("b.csv", "a,text\n1,2\n1,2,3\n"), "b.csv: line 3 has 3 fields, not 2"));
  CHECK(contains(refused("c.csv", "a,text\n1,\"2\n"), "c.csv: line 2: a quotation mark is not closed"));
  CHECK(contains(text_error(folder, format("path: {}, positions: 8", folder / "absent")), "absent"));
  std::filesystem::create_directories(folder / "none");
  CHECK(contains(text_error(folder, format("path: {}, positions: 8", folder / "none")), "none: holds no text"));

  const std::string characters = ", tokenizer: " + golden("sp_unigram.model");
  const std::string latin = random_text(1'500'000, 3);
  CHECK(contains(refused("latin.txt", latin + "caf\xe9!\n", characters),
                 format("latin.txt: byte {} (0xe9) is not UTF-8", latin.size() + 3)));
  CHECK(contains(refused("latin.csv", "text\nabc\ncaf\xe9\n", characters),
                 "latin.csv: line 3, byte 3 of the text (0xe9)"));
  write_file(folder / "bytes.txt", latin + "caf\xe9!\n");
  CHECK(OpenedText(folder, format("path: {}, positions: 4096", folder / "bytes.txt")).rows().size() > 300);

  const std::string with = ", tokenizer: ";
  write_file(folder / "tokenizer.txt", "hello");
  CHECK(contains(refused("t.txt", "0123456789", with + (folder / "tokenizer.txt")), "no tokenizer file that is known"));
  CHECK(contains(refused("t.txt", "0123456789", with + (folder / "nowhere.json")), "nowhere.json"));
  CHECK(contains(refused("t.txt", "0123456789", with + (folder / "none")), "none: holds no tokenizer"));
}

TEST_CASE("text: a warning counts the tokens that replace unknown text") {
  const TempFolder folder;
  const auto tokenizer = load_tokenizer(golden("bert.json"));
  const std::string text = random_text(20'000, 5);
  const std::vector<TokenId> ids = ids_of(*tokenizer, text);
  const auto unknown = std::count(ids.begin(), ids.end(), *tokenizer->unknown_token());
  REQUIRE(unknown > 100);
  write_file(folder / "t.txt", text);
  const auto warnings = [&](const std::string& name) {
    const OpenedText opened(
        folder, format("path: {}, positions: 8, end_token: none, tokenizer: {}", folder / "t.txt", name), token_use());
    return opened.data.info().warnings;
  };
  for (int again = 0; again < 2; ++again) {  // the tokens are made, and read again
    const std::vector<std::string> found = warnings(golden("bert.json"));
    REQUIRE(found.size() == 1);
    CHECK(contains(found[0], format("t.txt: {} of {} tokens are the unknown token", unknown, ids.size())));
  }
  CHECK(warnings(golden("gpt2.json")).empty());
  CHECK(warnings("bytes").empty());
}

TEST_CASE("text: token files that are cut short or hold ids beyond the vocabulary are refused") {
  const TempFolder folder;
  std::vector<std::uint16_t> ids(100);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::uint16_t>(i * 7 % 50);
  ids[61] = 300;
  const std::string bin = raw(ids);
  const auto refused = [&](const std::string& name, const std::string& content, const std::string& more,
                           std::int64_t embedding = 0, ErrorKind kind = ErrorKind::data) {
    write_file(folder / name, content);
    return text_error(folder, format("path: {}, positions: 8{}", folder / name, more), kind, token_use(embedding));
  };
  CHECK(contains(refused("odd.bin", bin.substr(1), ", classes: 400"), "has 199 bytes, which is no multiple of the 2"));
  CHECK(contains(refused("odd.bin", bin.substr(2), ", classes: 400, dtype: uint32"), "no multiple of the 4 bytes"));
  CHECK(contains(refused("a.bin", bin, ", tokenizer: bytes"),
                 "a.bin: token 61 (at byte 122) has the id 300, but the vocabulary has the ids 0 to 256"));
  CHECK(contains(refused("a.npy", npy("<u2", "(100,)", bin), ", classes: 300"),
                 "a.npy: token 61 (at byte 250) has the id 300, but the vocabulary has the ids 0 to 299"));
  CHECK(contains(
      refused("a.bin", bin, ", classes: 400", 300),
      "has the id 300, but the embedding has the ids 0 to 299; set its input_dim to the size of the vocabulary, 400"));
  CHECK(contains(refused("a.bin", bin, "", 300), "has the id 300, but the vocabulary has the ids 0 to 299"));
  CHECK(contains(refused("a.bin", bin, "", 0, ErrorKind::config), "the number of different tokens"));
  CHECK(contains(refused("f.npy", npy("<f4", "(50,)", bin), ", classes: 400"), "its values are no whole numbers"));
  CHECK(contains(refused("two.npy", npy("<u2", "(10, 10)", bin), ", classes: 400"), "of one dimension"));
  write_file(folder / "text.txt", "0123456789");
  CHECK(contains(
      text_error(folder, format("path: {}, positions: 4", folder / "text.txt"), ErrorKind::data, token_use(200)),
      "has the id 256, but the embedding has the ids 0 to 199"));

  // Megatron-LM's index.
  ids[61] = 3;
  const std::string magic("MMIDIDX\0\0", 9), sizes = raw(std::vector<std::int32_t>{60, 40}),
                                             pointers = raw(std::vector<std::int64_t>{0, 120}),
                                             marks = raw(std::vector<std::int64_t>{0, 1, 2});
  const std::string counts = little(1, 8) + little(8, 1) + little(2, 8) + little(3, 8);
  const auto megatron = [&](const std::string& index, const std::string& tokens) {
    write_file(folder / "m.idx", index);
    return refused("m.bin", tokens, ", classes: 400");
  };
  const std::string good = raw(ids);
  CHECK(contains(megatron("MMIDIDX", good), "m.idx: is cut short"));
  CHECK(contains(megatron(magic + counts + sizes + pointers + marks.substr(3), good), "m.idx: has 79 bytes, but 2"));
  CHECK(contains(megatron("x" + magic.substr(1) + counts + sizes + pointers + marks, good), "is no index of Megatron"));
  CHECK(contains(megatron(magic + little(2, 8) + counts.substr(8) + sizes + pointers + marks, good), "version 2"));
  CHECK(contains(megatron(magic + little(1, 8) + little(7, 1) + counts.substr(9) + sizes + pointers + marks, good),
                 "no type of whole numbers"));
  CHECK(contains(megatron(magic + counts + sizes + raw(std::vector<std::int64_t>{0, 118}) + marks, good),
                 "sequence 1 does not follow"));
  CHECK(contains(megatron(magic + counts + sizes + pointers + raw(std::vector<std::int64_t>{0, 2, 1}), good),
                 "out of order"));
  CHECK(contains(megatron(magic + counts + sizes + pointers + marks, good.substr(2)),
                 "m.bin: has 198 bytes, but its index"));
}

}  // namespace trainctl::test::tokenize_test
