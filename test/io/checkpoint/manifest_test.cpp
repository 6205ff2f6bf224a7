// Tests manifests: that they are read as they were written, and which ones are refused.
#include "io/checkpoint/manifest.h"

#include <cmath>
#include <limits>
#include <map>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/base/json.h"
#include "test/catch.h"
#include "test/support/manifests.h"
#include "test/support/snapshots.h"

namespace trainctl::test::manifest_test {

TEST_CASE("a manifest with an impossible number is refused") {
  Manifest manifest;
  manifest.mesh = {1, 1, 1};
  manifest.best = {"val_loss", false, 0.5, 3};
  manifest.files = {{"weights.safetensors", {}, {{"a", {2, 3}, "0123456789abcdef"}}}};
  const std::string whole = text_of(manifest);
  REQUIRE_NOTHROW(parse_manifest(whole, "m"));
  const auto sealed = [&](const std::string& before, const std::string& after) {
    std::string text = whole.substr(0, whole.rfind(",\n  \"manifest_sha256\""));
    const std::size_t at = text.find(before);
    REQUIRE(at != std::string::npos);
    text.replace(at, before.size(), after);
    return text + ",\n  \"manifest_sha256\": \"" + sha256(text.data(), text.size()) + "\"\n}\n";
  };
  for (const std::string key : {"\n  \"step\": 0", "\"sequence\": 0", "\"epoch\": 0", "\"offset\": 0", "\"bytes\": 0",
                                "\"step\": 3", "\"value\": 0.5"}) {
    const std::string name = key.substr(0, key.find(':') + 2);
    for (const std::string value :
         {"1e308", "-1", "9223372036854775807", "18446744073709551616", "0.5", "\"7\"", "null", "[]", "1e400"}) {
      if (name == "\"value\": " &&
          (value == "-1" || value == "0.5" || value[0] == '9' || value == "1e308" || value.starts_with("18"))) {
        continue;  // any finite loss is valid
      }
      if (name == "\"bytes\": " && value[0] == '9') continue;  // compared with the file's size later
      CAPTURE(name, value);
      ErrorKind kind{};
      CHECK(failure_of([&] { parse_manifest(sealed(key, name + value), "m"); }, &kind).find("m: ") == 0);
      CHECK(kind == ErrorKind::data);
    }
  }
  for (const char* shape : {"-2", "4611686018427387904", "1e308", "\"2\""}) {
    CHECK_THROWS_AS(parse_manifest(sealed("\"shape\": [2,", std::string("\"shape\": [") + shape + ","), "m"), Error);
  }
  for (const char* size : {"0", "-1", "2147483648", "1e9"}) {
    CHECK_THROWS_AS(parse_manifest(sealed("[\n    1,", std::string("[\n    ") + size + ","), "m"), Error);
  }
}

TEST_CASE("a manifest keeps metrics that are not finite and stays valid JSON") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Manifest manifest;
  manifest.metrics = {{"a", std::nan("")}, {"b", infinity}, {"c", -infinity}, {"d", 0.25}};
  const std::string text = text_of(manifest);
  CHECK(Json::parse(text)["metrics"].dump() == R"({"a":"NaN","b":"Infinity","c":"-Infinity","d":0.25})");
  const std::map<std::string, double> read = parse_manifest(text, "here").metrics;
  CHECK(std::isnan(read.at("a")));
  CHECK(read.at("b") == infinity);
  CHECK(read.at("c") == -infinity);
  CHECK(read.at("d") == 0.25);
}

TEST_CASE("a manifest with any names and texts is read as it was written") {
  Manifest manifest;
  manifest.metadata = {{"", ""}, {"quote \"", "line\nfeed\t\\"}, {"größe", std::string("\0\x1f\x7f", 3)}};
  const Shape matrix{3, 4};
  manifest.files = {
      {"empty", {0, "a"}, {}},
      {"two", {5, "b"}, {{"scalar", Shape(), "1"}, {"ä/\"b\"", matrix, "2", TensorExtent::range(matrix, 2, 7)}}}};
  const Manifest read = parse_manifest(text_of(manifest), "m");
  CHECK(read.metadata == manifest.metadata);
  REQUIRE(read.files.size() == 2);
  CHECK(read.files[0].tensors.empty());
  CHECK(read.files[1].seal == manifest.files[1].seal);
  REQUIRE(read.files[1].tensors.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const Manifest::Tensor &got = read.files[1].tensors[i], &expected = manifest.files[1].tensors[i];
    CHECK(got.name == expected.name);
    CHECK(got.shape == expected.shape);
    CHECK(got.xxh3 == expected.xxh3);
    CHECK(got.extent == expected.extent);
  }
}

TEST_CASE("the error for a manifest of a newer format names its version") {
  Manifest manifest;
  std::string text = text_of(manifest);
  CHECK(parse_manifest(text, "m").step == 0);
  const std::size_t at = text.find("\"format_version\": 3");
  text.replace(at, 19, "\"format_version\": 4");
  const std::size_t end = text.rfind(",\n  \"manifest_sha256\"");
  text = text.substr(0, end) + ",\n  \"manifest_sha256\": \"" + sha256(text.data(), end) + "\"\n}\n";
  CHECK(contains(failure_of([&] { parse_manifest(text, "m"); }), "format version 4"));
}

}  // namespace trainctl::test::manifest_test
