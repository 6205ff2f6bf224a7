// Tests the errors for files of weights that do not match or are damaged: all are reported together.
#include "test/catch.h"
#include "test/io/weights/support.h"
#include "test/support/mutation.h"

namespace trainctl::test::errors_test {
namespace {

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  return text.replace(text.find(what), what.size(), by);
}

}  // namespace

TEST_CASE("all tensors that do not match are reported together, with their names and shapes") {
  std::string yaml = small_model("PATH");
  yaml = replaced(yaml, "units: 5", "units: 6");
  yaml = replaced(yaml, "name: c2", "name: other");
  yaml = replaced(yaml, "weights: {", "weights: {skip: [no/*], ");
  ErrorKind kind{};
  const auto failure = [&](const std::string& file) {
    const std::string path = golden + file;
    std::string text = failure_of([&] { load(replaced(yaml, "PATH", path), small_image()); }, &kind);
    CHECK(kind == ErrorKind::config);
    for (std::size_t at = 0; (at = text.find(path)) != std::string::npos;) text.replace(at, path.size(), "FILE");
    return text;
  };
  const std::string torch = failure("small.safetensors");
  CAPTURE(torch);
  CHECK(contains(torch,
                 "FILE: 'predictions/bias' is 6, but 'head.4.bias' in the file is 5; `skip: [predictions/*]` keeps "
                 "the layer's initial values"));
  CHECK(contains(torch,
                 "FILE: 'predictions/kernel' is 7x6 (6x7 in the file's layout), but 'head.4.weight' in the file is "
                 "5x7;"));
  CHECK(contains(torch,
                 "FILE: 'other/kernel' is missing (by torch's names: 'other.weight'); `allow_missing: true` keeps "
                 "its initial values"));
  CHECK(contains(torch,
                 "FILE: no tensor of the network uses 'features.6.weight' (8x6x1x1); if that is intended, name it in "
                 "`skip`"));
  CHECK(contains(torch, "'no/*' skips no tensor, neither of the network nor of the file"));
  const std::string keras = failure("small.weights.h5");
  CAPTURE(keras);
  CHECK(contains(keras, "FILE: 'predictions/kernel' is 7x6, but 'predictions/0' in the file is 7x5;"));
  CHECK(contains(keras, "FILE: no tensor of the network uses 'c2/0' (1x1x6x8)"));
}

TEST_CASE("a file of another network leads to one error") {
  const std::string yaml = "layers: [flatten, {dense: {name: d, units: 3}}]\nweights: " + golden + "small.h5\n";
  const std::string failure = failure_of([&] { load(yaml, small_image()); });
  CHECK(contains(failure,
                 "none of its 20 tensors has a name that matches a tensor of the network: the file has 'bn/beta', "
                 "'bn/gamma', 'bn/moving_mean', ..., the network 'd/bias', 'd/kernel', ...; give rules in `names`"));
  CHECK(failure.find('\n') == std::string::npos);
}

TEST_CASE("rules for names rename tensors, and invalid rules are errors") {
  const auto applied = [](const std::string& rule, const std::string& name) { return NameRule(rule).apply(name); };
  CHECK(applied("conv{n} -> features.{2n-2}", "block1_conv12") == "block1_features.22");
  CHECK(applied("stage{s}/{n}/ -> layer{s}.{n+1}.", "stage3/0/block/bn") == "layer3.1.block/bn");
  CHECK(applied("^a -> b", "aaa") == "baa");
  CHECK(applied("a$ -> b", "aaa") == "aab");
  CHECK(applied("^a$ -> b", "aaa") == "aaa");
  CHECK(applied("{n}_{n} -> same", "1_2_2") == "1_same");
  CHECK(applied("^ -> vgg/", "c1") == "vgg/c1");
  CHECK(applied("x -> ", "axb") == "ab");
  const auto wrong = [](const std::string& rule) { return failure_of([&] { NameRule parsed(rule); }); };
  CHECK(contains(wrong("a"), "'a' is not a rule such as"));
  CHECK(contains(wrong("-> b"), "there is no text before the arrow"));
  CHECK(contains(wrong("{n -> b"), "'{n' is not a number of a rule such as {n}"));
  CHECK(contains(wrong("{n+1} -> b"), "'{n+1}' is not a number of a rule"));
  CHECK(contains(wrong("a{n} -> b{m}"), "{m} does not occur before the arrow"));
  CHECK(contains(testing::errors(small_layers + "weights: {file: f, names: {x: [a -> b, c]}}\n", small_image()),
                 "m.yaml:15:40: 'c' is not a rule such as"));
}

TEST_CASE("a file that is not a readable file of weights is a data error") {
  const TemporaryFolder folder;
  const auto failure = [&](const std::string& name) {
    ErrorKind kind{};
    const std::string text = failure_of([&] { load(small_model(folder / name), small_image()); }, &kind);
    CHECK(kind == ErrorKind::data);
    return text;
  };
  CHECK(contains(failure("none.h5"), "none.h5"));
  write_text(folder / "text.h5", "no weights at all");
  CHECK(contains(failure("text.h5"), "text.h5: not a valid safetensors file"));
  write_text(folder / "empty.h5", "");
  CHECK(contains(failure("empty.h5"), "empty.h5: too short for a safetensors file"));
  write_text(folder / "cut.h5", read_text(golden + "small.h5").substr(0, 5000));
  CHECK(contains(failure("cut.h5"), "cut.h5: a damaged HDF5 file: it has 5000 bytes instead of "));
  fs::copy_file(golden + "compressed.h5", folder / "compressed.h5");
  CHECK(contains(failure("compressed.h5"),
                 "an HDF5 file with 'c1/kernel' in chunks or another file, which is not "
                 "supported; save it again from Keras, or with h5py without options"));
  fs::copy_file(golden + "latest.h5", folder / "latest.h5");
  CHECK(contains(failure("latest.h5"), "an HDF5 file with superblock version "));
  write_text(folder / "other.keras", "PK\x03\x04 and no zip");
  CHECK(contains(failure("other.keras"), "other.keras"));
}

TEST_CASE("mutated files of weights: each loads, or is refused by one error") {
  const TemporaryFolder folder;
  for (const std::string name : {"small.safetensors", "small.weights.h5", "small.h5", "small.keras"}) {
    const std::string whole = read_text(golden + name), path = folder / name;
    REQUIRE(whole.size() > 10000);
    const PretrainedNetwork network(small_model(path), small_image());
    std::mt19937 random(14);
    int refused = 0;
    for (int i = 0; i < mutations(); ++i) {
      write_text(path, mutated(whole, random));
      CAPTURE(name, i);
      try {
        network.load();
      } catch (const Error& error) {
        ++refused;
        if (error.kind() != ErrorKind::data && error.kind() != ErrorKind::config) FAIL_CHECK(error.what());
      } catch (const std::exception& error) {
        FAIL_CHECK("an exception other than Error: " << error.what());
      }
    }
    CHECK(refused > mutations() / 4);
  }
}

}  // namespace trainctl::test::errors_test
