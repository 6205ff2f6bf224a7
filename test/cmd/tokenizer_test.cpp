// Tests trainctl tokenizer: what it prints and writes, and what it refuses.
#include <filesystem>

#include "test/catch.h"
#include "test/support/command.h"

namespace trainctl::test::tokenizer_test {
namespace {

std::string golden_tokenizer(const std::string& name) {
  return std::string(TRAINCTL_SOURCE_DIR) + "/test/golden/tokenizers/" + name;
}

TEST_CASE("tokenizer info shows the kind, the size and the special tokens") {
  const Folder folder;
  const Finished text = trainctl(folder, {"tokenizer", "info", golden_tokenizer("bert.json")});
  REQUIRE(text.code == 0);
  CHECK(contains(text.out, "bert.json: WordPiece, 907 ids, encodes UTF-8\n"));
  CHECK(contains(text.out, " 2  [CLS]\n"));
  const Finished json = trainctl(folder, {"tokenizer", "info", "bytes", "--json"});
  REQUIRE(json.code == 0);
  CHECK(Json::parse(json.out).at("vocabulary_size") == 257);
  CHECK(Json::parse(json.out).at("takes_any_bytes") == true);
  CHECK(Json::parse(json.out).at("special_tokens").at(0).at("text") == "<|endoftext|>");
}

TEST_CASE("tokenizer encode and decode are inverse, by text and by .npy") {
  const Folder folder;
  const std::string text = "It's 12345 caf\xc3\xa9s\n\n  \xff\x80 end";
  folder.write("a.txt", text);
  const std::string tokenizer = golden_tokenizer("gpt2.json");
  const Finished printed = trainctl(folder, {"tokenizer", "encode", tokenizer, "a.txt"});
  REQUIRE(printed.code == 0);
  folder.write("ids.txt", printed.out);
  CHECK(trainctl(folder, {"tokenizer", "decode", tokenizer, "ids.txt"}).out == text);
  const Finished written = trainctl(folder, {"tokenizer", "encode", tokenizer, "a.txt", "--out", "ids.npy"});
  REQUIRE(written.code == 0);
  CHECK(contains(written.out, "ids.npy: "));
  CHECK(trainctl(folder, {"tokenizer", "decode", tokenizer, "ids.npy"}).out == text);
  const Finished again = trainctl(folder, {"tokenizer", "encode", tokenizer, "a.txt", "--out", "ids.npy"});
  CHECK(again.code == 2);
  CHECK(contains(again.errors, "ids.npy"));
}

TEST_CASE("tokenizer encode recognizes special tokens unless the text is plain, and adds a frame on request") {
  const Folder folder;
  folder.write("a.txt", "[CLS] man [SEP]");
  const std::string bert = golden_tokenizer("bert.json");
  const std::string found = trainctl(folder, {"tokenizer", "encode", bert, "a.txt"}).out;
  CHECK(found.starts_with("2 "));
  CHECK_FALSE(trainctl(folder, {"tokenizer", "encode", bert, "a.txt", "--plain"}).out.starts_with("2 "));
  CHECK(trainctl(folder, {"tokenizer", "encode", bert, "a.txt", "--frame"}).out.starts_with("2 2 "));
}

TEST_CASE("tokenizer train writes a tokenizer that encodes its corpus") {
  const Folder folder;
  folder.write("a.txt", "low lower lowest low low\n");
  folder.write("b.txt", "low newer wider\n");
  const std::vector<std::string> train = {"tokenizer",         "train", "a.txt", "b.txt", "--out", "t.json",
                                          "--vocabulary-size", "260",   "--json"};
  const Finished trained = trainctl(folder, train);
  INFO(trained.errors);
  REQUIRE(trained.code == 0);
  CHECK(Json::parse(trained.out).at("merges") == 3);  // l o, lo w, and Ġ low
  folder.write("c.txt", "low low<|endoftext|>");
  CHECK(trainctl(folder, {"tokenizer", "encode", "t.json", "c.txt"}).out == "258 259 0\n");
  CHECK(trainctl(folder, train).code == 2);  // the file exists
  const std::vector<std::string> special = {"tokenizer", "train", "a.txt", "--kind", "wordpiece",
                                            "--special", "[CLS]", "--out", "w.json"};
  CHECK(contains(trainctl(folder, special).errors, "add --special [UNK]"));
  CHECK(contains(trainctl(folder, {"tokenizer", "info", "bytes", "--kind", "bpe"}).errors,
                 "--kind is only for tokenizer train"));
  CHECK(contains(trainctl(folder, {"tokenizer", "train", "a.txt"}).errors, "tokenizer train requires --out"));
}

TEST_CASE("tokenizer train reads the texts of lines of JSON, tables and folders, without their syntax") {
  const Folder folder;
  folder.write("plain.txt", "low lower\n\"quoted\" text");
  folder.write("texts/a.jsonl", R"({"id": 12345, "body": "low lower\n\"quoted\" text"})");
  folder.write("rows.csv", "number,body\n777,\"low lower\n\"\"quoted\"\" text\"\n");
  const auto tokens = [&](const std::string& path) {
    const Finished run = trainctl(folder, {"tokenizer", "train", path, "--text-column", "body", "--vocabulary-size",
                                           "290", "--out", "t.json", "--force"});
    INFO(run.errors);
    REQUIRE(run.code == 0);
    return Json::parse(read_file(folder / "t.json")).at("model").at("vocab");
  };
  const Json expected = tokens("plain.txt");
  CHECK(expected.size() > 256);
  CHECK(tokens("texts") == expected);
  CHECK(tokens("rows.csv") == expected);
  const Finished run = trainctl(folder, {"tokenizer", "train", "rows.csv", "--out", "n.json"});
  CHECK(run.code == 3);
  CHECK(contains(run.errors,
                 "rows.csv: has no column 'text'; its columns are: number, body; name it with --text-column"));
}

TEST_CASE("tokenizer refuses bad files and texts with one error each, which names the place and a remedy") {
  const Folder folder;
  const auto refused = [&](const std::vector<std::string>& words, int code, const std::string& message) {
    const Finished run = trainctl(folder, words);
    CAPTURE(words, run.errors);
    CHECK(run.code == code);
    CHECK(contains(run.errors, message));
    CHECK(count(run.errors, "\n") == 1);
  };
  folder.write("a.txt", "caf\xe9");
  folder.write("cut.json", read_file(golden_tokenizer("gpt2.json")).substr(0, 5000));
  folder.write("cut.tiktoken", read_file(golden_tokenizer("small.tiktoken")).substr(0, 2000));
  folder.write("ids.txt", "1 2 x");
  refused({"tokenizer", "info", "a.txt"}, 3, "a.txt: this is no tokenizer file that is known; give a tokenizer.json");
  refused({"tokenizer", "info", "cut.json"}, 3,
          ": not a valid tokenizer.json: model.vocab, entry 462: the text ends too early");
  refused({"tokenizer", "info", "cut.tiktoken"}, 3, "cut.tiktoken:");
  refused({"tokenizer", "info", golden_tokenizer("small.tiktoken")}, 3, "is none of tiktoken's encodings; name the");
  refused({"tokenizer", "info", golden_tokenizer("small.tiktoken"), "--encoding", "gpt9"}, 2, "name one of: r50k_base");
  refused({"tokenizer", "encode", golden_tokenizer("bert.json"), "a.txt"}, 3, "a.txt: byte 3 (0xe9) is not UTF-8");
  refused({"tokenizer", "encode", "bytes"}, 2, "tokenizer encode requires the file of a text");
  refused({"tokenizer", "encode", "bytes", "a.txt", "--out", "ids.bin"}, 2, "ids are written as an .npy file");
  refused({"tokenizer", "decode", "bytes", "ids.txt"}, 3, "ids.txt: byte 4 is part of no number");
  refused({"tokenizer", "info", "nowhere.json"}, 3, "nowhere.json");
}

}  // namespace
}  // namespace trainctl::test::tokenizer_test
