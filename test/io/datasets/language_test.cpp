// Tests the data set of language models: samples, targets, weights and documents against lists of ids made by hand.
#include <cstring>
#include <filesystem>
#include <map>
#include "core/base/json.h"

#include "test/io/datasets/corpus_support.h"

namespace trainctl::test::language_test {
namespace {

using Ids = std::vector<std::int32_t>;

constexpr TokenId end_of_bytes = 256;

// The ids of documents as bytes, each with its end.
Ids stream_of(const std::vector<std::string>& documents) {
  Ids ids;
  for (const std::string& document : documents) {
    for (const char byte : document) ids.push_back(static_cast<unsigned char>(byte));
    ids.push_back(end_of_bytes);
  }
  return ids;
}

Ids part(const Ids& ids, std::size_t first, std::size_t count) {
  return {ids.begin() + static_cast<std::ptrdiff_t>(first), ids.begin() + static_cast<std::ptrdiff_t>(first + count)};
}

// How often each token of the stream is the target of a position that counts, by its position in the stream. All ids
// of the stream are different.
std::map<std::int32_t, int> judged(const std::vector<OpenedText::Row>& rows) {
  std::map<std::int32_t, int> count;
  for (const OpenedText::Row& row : rows) {
    for (std::size_t p = 0; p < row.classes.size(); ++p) {
      CHECK(row.classes[p] == row.inputs[0][p] + 1);
      CHECK((row.weights[p] == 0 || row.weights[p] == 1));
      count[row.classes[p]] += row.weights[p] == 1 ? 1 : 0;
    }
  }
  return count;
}

}  // namespace

TEST_CASE("text: samples follow each other in the stream of all documents, with the next tokens as targets") {
  const TempFolder folder;
  const std::vector<std::string> documents = {random_text(301, 1), random_text(77, 2), random_text(500, 3)};
  write_file(folder / "t/a.md", documents[0]);
  write_file(folder / "t/b/1.txt", documents[1]);
  write_file(folder / "t/b/2.txt", documents[2]);
  write_file(folder / "t/.hidden", "nothing");
  write_file(folder / "t/z.png", std::string("\x89PNG\0\0", 6));
  const Ids stream = stream_of(documents);
  const OpenedText opened(folder, format("path: {}, positions: 20", folder / "t"));
  const auto rows = opened.rows();
  const std::size_t full = (stream.size() - 1) / 20;
  REQUIRE(rows.size() == full + ((stream.size() - 1) % 20 > 0 ? 1 : 0));
  for (std::size_t i = 0; i < full; ++i) {
    CHECK(rows[i].inputs[0] == part(stream, 20 * i, 20));
    CHECK(rows[i].classes == part(stream, 20 * i + 1, 20));
    CHECK(rows[i].weights == std::vector<float>(20, 1));
  }
  CHECK(rows.back().classes == part(stream, stream.size() - 20, 20));
  const DataInfo& info = opened.data.info();
  CHECK(info.targets[0].classes == 257);
  CHECK(info.targets[0].shape == Shape{20});
  CHECK(info.weight == Shape{20});
  CHECK(info.is_masked);
  CHECK(info.inputs[0].format.dtype == DType::int32);
  REQUIRE(info.warnings.size() == 1);
  CHECK(info.warnings[0] == (folder / "t") + ": 1 binary file is left out; 1 hidden file is left out");
}

TEST_CASE("text: every token is the target of exactly one position that counts, for any stride in evaluation") {
  const TempFolder folder;
  std::mt19937 random(5);
  for (int i = 0; i < 40; ++i) {
    const int positions = static_cast<int>(random() % 30 + 1), stride = static_cast<int>(random() % 30 % positions) + 1;
    const int count = positions + 1 + static_cast<int>(random() % 200);
    std::vector<std::uint16_t> ids(static_cast<std::size_t>(count));
    for (int k = 0; k < count; ++k) ids[static_cast<std::size_t>(k)] = static_cast<std::uint16_t>(k);
    write_file(folder / "t.bin", raw(ids));
    const OpenedText opened(folder, format("path: {0}, positions: {1}, classes: 1000, evaluation_stride: {2}, "
                                           "validation: {{path: {0}}}",
                                           folder / "t.bin", positions, stride));
    CAPTURE(positions, stride, count);
    for (const SplitKind split : {SplitKind::training, SplitKind::validation}) {
      const auto found = judged(opened.rows(split));
      REQUIRE(std::ssize(found) == count - 1);
      CHECK(std::all_of(found.begin(), found.end(), [](const auto& token) { return token.second == 1; }));
    }
    // With a stride in training, positions overlap and all of them count.
    if (stride == positions) continue;
    const OpenedText overlapping(
        folder, format("path: {}, positions: {}, classes: 1000, stride: {}", folder / "t.bin", positions, stride));
    for (const auto& row : overlapping.rows()) CHECK(row.weights == std::vector<float>(row.weights.size(), 1));
    CHECK(overlapping.rows()[1].inputs[0][0] == std::min(stride, count - 1 - positions));
  }
}

TEST_CASE("text: the numbers of documents in a sample begin with 0 and rise at each document") {
  const TempFolder folder;
  std::vector<std::string> documents;
  std::string lines;
  for (unsigned d = 0; d < 30; ++d) {
    documents.push_back(random_text(1 + d * 7 % 40, d));
    lines += json_text(Json{{"text", documents.back()}}) + "\n";
  }
  write_file(folder / "t.jsonl", lines);
  DataUse use = token_use();
  use.inputs = {{"documents", 0}, {"tokens", 0}};
  const std::string yaml = format("path: {}, positions: 32, document_numbers: true", folder / "t.jsonl");
  const OpenedText opened(folder, yaml, use);
  const Ids stream = stream_of(documents);
  const auto rows = opened.rows();
  REQUIRE(rows.size() > 10);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t first = std::min(32 * i, stream.size() - 33);
    CHECK(rows[i].inputs[1] == part(stream, first, 32));
    std::int32_t number = 0;
    for (std::size_t p = 0; p < 32; ++p) {
      if (rows[i].inputs[0][p] != number) FAIL_CHECK("sample " << i << ", position " << p);
      number += stream[first + p] == end_of_bytes ? 1 : 0;
    }
  }
  // The same tokens in a file without an index of documents, whose ends the end token tells.
  std::vector<std::uint16_t> ids(stream.begin(), stream.end());
  write_file(folder / "t.bin", raw(ids));
  const OpenedText plain(
      folder, format("path: {}, positions: 32, document_numbers: true, tokenizer: bytes", folder / "t.bin"), use);
  const auto same = plain.rows();
  REQUIRE(same.size() == rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) CHECK(same[i].inputs == rows[i].inputs);

  use.inputs = {{"tokens", 0}};
  CHECK(contains(text_error(folder, yaml, ErrorKind::config, use), "needs a model with the input 'documents'"));
}

TEST_CASE("text: without packing each document is a sample, which is cut or padded") {
  const TempFolder folder;
  const std::vector<std::string> documents = {"abc", "a long document", "x", "12345678"};
  std::string table = "id,text\n";
  for (const std::string& document : documents) table += "7,\"" + document + "\"\n";
  write_file(folder / "t.csv", table + "8,\n");  // a document without text leaves nothing
  const OpenedText opened(folder, format("path: {}, positions: 8, packing: false", folder / "t.csv"));
  const auto rows = opened.rows();
  REQUIRE(rows.size() == 4);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Ids stream = stream_of({documents[i]});
    const std::size_t count = std::min<std::size_t>(8, stream.size() - 1);
    Ids input = part(stream, 0, count), classes = part(stream, 1, count);
    input.resize(8, 0);
    classes.resize(8, 0);
    std::vector<float> weights(count, 1);
    weights.resize(8, 0);
    CHECK(rows[i].inputs[0] == input);
    CHECK(rows[i].classes == classes);
    CHECK(rows[i].weights == weights);
  }
}

TEST_CASE("text: the beginning and the end of a document are the tokens that the config names, or none") {
  const TempFolder folder;
  write_file(folder / "a/0.txt", "");
  write_file(folder / "a/1.txt", "abcdefgh");
  write_file(folder / "a/2.txt", "ij<|endoftext|>k");
  const auto first_ids = [&](const std::string& more) {
    const OpenedText opened(folder, format("path: {}, positions: 4, {}", folder / "a", more));
    Ids ids;
    for (const auto& row : opened.rows()) {
      for (std::size_t p = 0; p < 4; ++p) {
        if (row.weights[p] > 0) ids.push_back(row.classes[p]);
      }
    }
    return ids;
  };
  const auto bytes = [](const std::string& text) {
    Ids ids;
    for (const char byte : text) ids.push_back(byte == '$' ? end_of_bytes : byte);
    return ids;
  };
  CHECK(first_ids("end_token: auto") == bytes("bcdefgh$ij<|endoftext|>k$"));
  CHECK(first_ids("end_token: <|endoftext|>") == bytes("bcdefgh$ij<|endoftext|>k$"));
  CHECK(first_ids("end_token: none") == bytes("bcdefghij<|endoftext|>k"));
  CHECK(first_ids("special_text: recognized") == bytes("bcdefgh$ij$k$"));
  const std::string begin = "begin_token: <|endoftext|>, ";
  CHECK(first_ids(begin + "end_token: none") == bytes("abcdefgh$ij<|endoftext|>k"));
  // Each document begins with the token, also one that begins inside a file.
  CHECK(first_ids(begin + "end_token: auto, special_text: recognized") == bytes("abcdefgh$$ij$$k$"));
  CHECK(first_ids(begin + "end_token: auto") == bytes("abcdefgh$$ij<|endoftext|>k$"));
  CHECK(contains(text_error(folder, format("path: {}, positions: 4, end_token: </s>", folder / "a"), ErrorKind::config),
                 "bytes has no special token '</s>'"));
}

TEST_CASE("text: token files of all kinds give the same samples") {
  const TempFolder folder;
  std::mt19937 random(8);
  std::vector<std::int32_t> ids(333);
  for (std::int32_t& id : ids) id = static_cast<std::int32_t>(random() % 60000);
  const std::vector<std::uint16_t> narrow(ids.begin(), ids.end());
  const std::vector<std::uint32_t> wide(ids.begin(), ids.end());
  write_file(folder / "narrow.bin", raw(narrow));
  write_file(folder / "wide.bin", raw(wide));
  write_file(folder / "i4.npy", npy("<i4", "(333,)", raw(ids)));
  write_file(folder / "u2.npy", npy("<u2", "(333,)", raw(narrow)));
  // Megatron-LM's format: four sequences, the last two of which are one document.
  const std::vector<std::int32_t> sizes = {100, 33, 150, 50};
  std::vector<std::int64_t> pointers = {0, 200, 266, 566}, documents = {0, 1, 2, 4};
  write_file(folder / "megatron.bin", raw(narrow));
  write_file(folder / "megatron.idx", std::string("MMIDIDX\0\0", 9) + little(1, 8) + little(8, 1) + little(4, 8) +
                                          little(4, 8) + raw(sizes) + raw(pointers) + raw(documents));
  DataUse use = token_use();
  const std::string first = "positions: 10, classes: 60000, path: ";
  const auto expected = OpenedText(folder, first + (folder / "narrow.bin")).rows();
  CHECK(expected[3].inputs[0] == part(ids, 30, 10));
  CHECK(expected[3].classes == part(ids, 31, 10));
  for (const char* file : {"wide.bin, dtype: uint32", "i4.npy", "u2.npy", "megatron.bin"}) {
    const auto rows = OpenedText(folder, first + (folder / file)).rows();
    REQUIRE(rows.size() == expected.size());
    for (std::size_t i = 0; i < rows.size(); ++i) CHECK(rows[i].inputs == expected[i].inputs);
  }
  std::vector<std::uint32_t> small(wide.begin(), wide.end());
  for (std::uint32_t& id : small) id %= 50'000;
  write_file(folder / "small.bin", raw(small));
  const auto warnings = [&](const std::string& file) {
    return OpenedText(folder, first + (folder / file)).data.info().warnings;
  };
  CHECK(warnings("narrow.bin").empty());
  CHECK(warnings("small.bin, dtype: uint32").empty());
  REQUIRE(warnings("small.bin").size() == 1);
  CHECK(contains(warnings("small.bin")[0],
                 "small.bin: every second id is 0, as if its ids had four bytes: set `dtype: "
                 "uint32`"));
  const auto by_document = OpenedText(folder, "packing: false, " + first + (folder / "megatron.bin")).rows();
  REQUIRE(by_document.size() == 3);
  CHECK(by_document[1].inputs[0] == part(ids, 100, 10));
  CHECK(by_document[2].inputs[0] == part(ids, 133, 10));

  // A folder of token files: each is cut into samples of its own.
  write_file(folder / "shards/1.bin", raw(narrow));
  write_file(folder / "shards/2.npy", npy("<i4", "(333,)", raw(ids)));
  CHECK(OpenedText(folder, first + (folder / "shards")).rows().size() == 2 * expected.size());
  CHECK(contains(text_error(folder, "packing: false, " + first + (folder / "narrow.bin")), "documents end"));
}

TEST_CASE("text: the tokens are made once, and again if the text, the tokenizer or an option changes") {
  namespace fs = std::filesystem;
  const TempFolder folder;
  write_file(folder / "t/a.txt", random_text(4000, 3));
  const auto files = [&] {
    std::map<std::string, fs::file_time_type> found;
    for (const auto& entry : fs::directory_iterator(folder / "cache")) {
      const std::string name = entry.path().filename().string();
      CHECK((name.starts_with("tokens-") || name.starts_with("corpus-")));  // neither locks nor unfinished files
      if (name.starts_with("tokens-")) found[name] = entry.last_write_time();
    }
    return found;
  };
  const std::string yaml = format("path: {}, positions: 16", folder / "t");
  const OpenedText first(folder, yaml);
  const auto made = files();
  REQUIRE(made.size() == 1);
  const OpenedText second(folder, yaml);
  CHECK(files() == made);
  CHECK(first.data.info().fingerprint == second.data.info().fingerprint);
  fs::rename(folder / "t", folder / "moved");  // a copy of the data has the same tokens
  CHECK(OpenedText(folder, format("path: {}, positions: 16", folder / "moved")).data.info().fingerprint ==
        first.data.info().fingerprint);
  CHECK(files() == made);
  fs::rename(folder / "moved", folder / "t");
  const OpenedText other(folder, yaml + ", end_token: none");
  CHECK(files().size() == 2);
  CHECK(other.data.info().fingerprint != first.data.info().fingerprint);

  // The hash of files that changed a while ago is kept, until one of them changes.
  const auto past = fs::file_time_type::clock::now() - std::chrono::hours(1);
  fs::last_write_time(folder / "t/a.txt", past);
  OpenedText(folder, yaml);
  std::string changed = read_whole(folder / "t/a.txt");
  changed[17] = changed[17] == 'z' ? 'y' : 'z';
  write_file(folder / "t/a.txt", changed);
  fs::last_write_time(folder / "t/a.txt", past + std::chrono::seconds(1));
  const OpenedText after(folder, yaml);
  CHECK(after.rows()[1].inputs[0][1] == changed[17]);
  CHECK(files().size() == 3);
}

TEST_CASE("text: a damaged token file is made again") {
  namespace fs = std::filesystem;
  const TempFolder folder;
  write_file(folder / "t.txt", random_text(4000, 3));
  const std::string yaml = format("path: {}, positions: 16", folder / "t.txt");
  const std::size_t rows = OpenedText(folder, yaml).rows().size();
  std::string path;
  for (const auto& entry : fs::directory_iterator(folder / "cache")) {
    if (entry.path().filename().string().starts_with("tokens-")) path = entry.path().string();
  }
  const std::string whole = read_whole(path);
  for (const std::string& damaged : {whole.substr(0, whole.size() - 1), whole.substr(2), whole.substr(0, 30)}) {
    write_file(path, damaged);
    CHECK(OpenedText(folder, yaml).rows().size() == rows);
    CHECK(read_whole(path) == whole);
  }
}

}  // namespace trainctl::test::language_test
