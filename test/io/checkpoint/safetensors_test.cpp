// Tests safetensors files: their bytes (parsed independently), round trips and invalid headers.
#include "io/checkpoint/safetensors.h"

#include <cstring>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/base/json.h"
#include "test/catch.h"
#include "test/support/snapshots.h"

namespace trainctl::test::safetensors_test {
namespace {

FileSeal write(const std::string& path, const std::vector<NamedTensor>& tensors) {
  OutputFile file(path, path, 0);
  write_safetensors(file, tensors, {{"made_by", "a test"}});
  return file.finish();
}

std::string with_header(const std::string& header, const std::string& data, std::uint64_t length) {
  std::string text(8, '\0');
  std::memcpy(text.data(), &length, 8);
  return text + header + data;
}

ErrorKind kind_of_failure(const std::string& path) {
  ErrorKind kind = ErrorKind::internal;
  CHECK(failure_of([&] { SafetensorsFile file(path); }, &kind).find(path) == 0);
  return kind;
}

}  // namespace

TEST_CASE("a safetensors file has the documented layout") {
  const TemporaryFolder folder;
  const RandomSnapshot random(1);
  const auto& tensors = random.snapshot.weights;
  const FileSeal seal = write(folder / "w", tensors);
  const std::string text = read_text(folder / "w");
  CHECK(seal == FileSeal{static_cast<std::int64_t>(text.size()), sha256(text.data(), text.size())});

  std::uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length * 256 + static_cast<unsigned char>(text[static_cast<std::size_t>(i)]);
  CHECK(length % 8 == 0);
  const auto header = nlohmann::json::parse(text.substr(8, length));
  CHECK(header.size() == tensors.size() + 1);
  CHECK(header["__metadata__"]["made_by"] == "a test");
  std::size_t expected_begin = 0;
  for (const NamedTensor& tensor : tensors) {
    const auto& entry = header.at(tensor.name);
    CHECK(entry["dtype"] == "F32");
    CHECK(entry["shape"].get<std::vector<std::int64_t>>() == tensor.shape.sizes());
    const std::size_t begin = entry["data_offsets"][0], end = entry["data_offsets"][1];
    CHECK(begin == expected_begin);
    const std::string bytes(tensor.view.as<char>(), static_cast<std::size_t>(tensor.view.bytes()));
    CHECK(text.substr(8 + length + begin, end - begin) == bytes);
    expected_begin = end;
  }
  CHECK(text.size() == 8 + length + expected_begin);
}

TEST_CASE("tensors written to a safetensors file are read back") {
  const TemporaryFolder folder;
  const RandomSnapshot random(2);
  const FileSeal seal = write(folder / "w", random.snapshot.weights);
  const SafetensorsFile file(folder / "w");
  CHECK(file.header().metadata == std::map<std::string, std::string>{{"made_by", "a test"}});
  std::string data(static_cast<std::size_t>(file.data_bytes()), '?');
  CHECK(file.read_all(data.data()) == seal);
  for (const NamedTensor& tensor : random.snapshot.weights) {
    const StoredTensor* stored = file.header().find(tensor.name);
    REQUIRE(stored);
    CHECK(stored->shape == tensor.shape);
    std::string bytes(static_cast<std::size_t>(stored->bytes()), '?');
    file.read(*stored, bytes.data());
    CHECK(std::memcmp(bytes.data(), tensor.view.data, bytes.size()) == 0);
    CHECK(data.substr(static_cast<std::size_t>(stored->begin), bytes.size()) == bytes);
  }
  CHECK(file.header().find("nobody") == nullptr);
}

TEST_CASE("a safetensors header in another writer's style is parsed") {
  const auto header = parse_safetensors_header(
      R"( {"b":{"shape":[2],"data_offsets":[8,24],"dtype":"I64"},"__metadata__":{"k":"v"},"a":{"dtype":"BF16","shape":[2,2],"data_offsets":[0,8]},"e":{"dtype":"F32","shape":[0,3],"data_offsets":[24,24]}} )" +
          1,
      24, "x");
  REQUIRE(header.tensors.size() == 3);
  CHECK(header.tensors[0].name == "a");
  CHECK(header.tensors[0].dtype == DType::bfloat16);
  CHECK(header.tensors[1].shape == Shape{2});
  CHECK(header.find("e")->bytes() == 0);
}

TEST_CASE("invalid safetensors headers are refused") {
  const std::string good = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  REQUIRE_NOTHROW(parse_safetensors_header(good, 8, "x"));
  const std::string bad[] = {
      "",
      "[]",
      "{",
      good + "x",
      R"({"a":1})",
      R"({"a":[]})",
      R"({"a":{}})",
      R"({"a":null})",
      R"({"a":{"b":{}}})",
      R"({"a":{"dtype":"F32","shape":[2]}})",
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,9]}})",
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"more":1}})",
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"data_offsets":[0,8]}})",
      R"({"a":{"dtype":"F33","shape":[2],"data_offsets":[0,8]}})",
      R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})",
      R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})",
      R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})",
      R"({"a":{"dtype":"F32","shape":[[2]],"data_offsets":[0,8]}})",
      R"({"a":{"dtype":"F32","shape":[9223372036854775807,4],"data_offsets":[0,8]}})",
      R"({"a":{"dtype":"F32","shape":[4294967296,4294967296,2],"data_offsets":[0,0]}})",
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})",
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[2],"data_offsets":[2,8]}})",
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
      R"({"__metadata__":{"a":1},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
      R"({"__metadata__":"a","a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
  };
  for (const std::string& header : bad) {
    INFO(header);
    CHECK_THROWS_AS(parse_safetensors_header(header, 8, "x"), Error);
  }
  const std::string deep(200000, '[');
  CHECK_THROWS_AS(parse_safetensors_header("{\"a\":" + deep, 8, "x"), Error);
}

TEST_CASE("safetensors files that claim more than they hold are refused") {
  const TemporaryFolder folder;
  const std::string header = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  const std::string whole = with_header(header, "12345678", header.size());
  write_text(folder / "w", whole);
  REQUIRE_NOTHROW(SafetensorsFile(folder / "w"));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    write_text(folder / "w", whole.substr(0, length));
    CHECK(kind_of_failure(folder / "w") == ErrorKind::data);
  }
  for (const std::uint64_t length : {std::uint64_t{header.size() + 9}, std::uint64_t{1} << 62, ~std::uint64_t{0}}) {
    write_text(folder / "w", with_header(header, "12345678", length));
    CHECK(kind_of_failure(folder / "w") == ErrorKind::data);
  }
  CHECK(kind_of_failure(folder / "none") == ErrorKind::data);
}

}  // namespace trainctl::test::safetensors_test
