// Tests files of ONNX models by reading them field by field as protocol buffers.
#include <map>
#include <string_view>

#include "io/onnx/file.h"
#include "test/catch.h"
#include "test/support/snapshots.h"

namespace trainctl::test::onnx_file_test {
namespace {

// The fields of a message: numbers as text, everything else as bytes.
std::multimap<int, std::string> fields_of(std::string_view bytes) {
  std::multimap<int, std::string> fields;
  std::size_t at = 0;
  const auto varint = [&] {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes.at(at++));
      value |= std::uint64_t{byte & 127u} << shift;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.size()) {
    const std::uint64_t key = varint();
    if ((key & 7) == 0) {
      fields.emplace(key >> 3, std::to_string(static_cast<std::int64_t>(varint())));
      continue;
    }
    REQUIRE(((key & 7) == 2 || (key & 7) == 5));
    const std::size_t length = (key & 7) == 2 ? varint() : 4;
    REQUIRE(at + length <= bytes.size());
    fields.emplace(key >> 3, bytes.substr(at, length));
    at += length;
  }
  return fields;
}

std::string one(const std::multimap<int, std::string>& fields, int number) {
  REQUIRE(fields.count(number) == 1);
  return fields.find(number)->second;
}

OnnxModel small_model() {
  OnnxModel model;
  model.inputs = {{"x", {{1, 3}, DType::uint8}}};
  model.outputs = {{"y", {{1, 2}, DType::float32}}};
  model.nodes = {{"Gather", {"table", "x"}, {"y"}, {{"axis", -1}, {"alpha", 0.5f}, {"mode", "linear"}}}};
  model.constants = {{"table", {{2, 2}, DType::float32}, std::string(16, 'a')},
                     {"more", {{300}, DType::bfloat16}, std::string(600, 'b')}};
  model.metadata = {{"class_names", "[\"cat\"]"}};
  return model;
}

}  // namespace

TEST_CASE("a file has the version, the graph and all constants") {
  const TemporaryFolder folder;
  const std::string path = folder / "net.onnx";
  const std::int64_t bytes = write_onnx(path, small_model());
  const std::string text = read_text(path);
  CHECK(std::ssize(text) == bytes);
  const auto model = fields_of(text);
  CHECK(one(model, 1) == "8");
  CHECK(one(model, 2) == "trainctl");
  CHECK(one(fields_of(one(model, 8)), 2) == std::to_string(onnx_opset));
  CHECK(one(fields_of(one(model, 14)), 2) == "[\"cat\"]");
  const auto graph = fields_of(one(model, 7));
  const auto node = fields_of(one(graph, 1));
  CHECK(one(node, 4) == "Gather");
  CHECK(node.count(1) == 2);
  CHECK(one(node, 2) == "y");
  CHECK(node.count(5) == 3);
  REQUIRE(graph.count(5) == 2);
  const auto first = fields_of(graph.lower_bound(5)->second),
             second = fields_of(std::prev(graph.upper_bound(5))->second);
  CHECK(one(first, 8) == "table");
  CHECK(one(first, 2) == "1");
  CHECK(one(first, 9) == std::string(16, 'a'));
  CHECK(one(second, 1) == "300");
  CHECK(one(second, 2) == "16");
  CHECK(one(second, 9) == std::string(600, 'b'));
}

TEST_CASE("the first dimension of inputs and outputs has a name instead of a size") {
  const TemporaryFolder folder;
  const std::string path = folder / "net.onnx";
  write_onnx(path, small_model());
  const auto graph = fields_of(one(fields_of(read_text(path)), 7));
  const auto input = fields_of(one(graph, 11));
  CHECK(one(input, 1) == "x");
  const auto tensor = fields_of(one(fields_of(one(input, 2)), 1));
  CHECK(one(tensor, 1) == "2");
  const auto dimensions = fields_of(one(tensor, 2));
  REQUIRE(dimensions.count(1) == 2);
  CHECK(one(fields_of(dimensions.begin()->second), 2) == "batch");
  CHECK(one(fields_of(std::next(dimensions.begin())->second), 1) == "3");
}

}  // namespace trainctl::test::onnx_file_test
