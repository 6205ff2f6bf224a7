// Tests the same networks as saved by many versions of Keras: they have the right outputs or are refused, whatever
// names their layers have.
#include <algorithm>
#include <filesystem>
#include <numeric>
#include <vector>

#include "core/base/format.h"
#include "core/base/json.h"
#include "io/checkpoint/atomic_file.h"
#include "io/datasets/arrays/zip.h"
#include "io/weights/hdf5_writer.h"
#include "io/weights/weights_file.h"
#include "test/catch.h"
#include "test/io/keras/imported.h"
#include "test/support/files.h"

namespace trainctl::test::keras_versions_test {
namespace {

const std::string versions = TRAINCTL_SOURCE_DIR "/test/golden/keras_versions/";

// The files of an archive, by name.
std::map<std::string, std::string> members(const std::string& path) {
  const Bytes archive = open_data(path);
  std::map<std::string, std::string> files;
  for (const ZipMember& member : list_zip(archive, path)) {
    const Bytes bytes = zip_bytes(archive, member, member.name).loaded();
    files[member.name] = {reinterpret_cast<const char*>(bytes.in_memory()), static_cast<std::size_t>(bytes.size())};
  }
  return files;
}

// Writes a member of an archive into a folder and returns its path.
std::string extracted(const TemporaryFolder& folder, const std::string& archive, const std::string& member) {
  write_text(folder / member, members(versions + archive).at(member));
  return folder / member;
}

std::string golden_of(const std::string& network) { return versions + network + ".safetensors"; }

// Writes a copy of a .keras file with another description of its network, and returns its path.
std::string with_config(const TemporaryFolder& folder, const std::string& file, const Json& config) {
  std::vector<std::pair<std::string, std::string>> parts;
  for (const auto& [name, data] : members(versions + file)) {
    parts.emplace_back(name, name == "config.json" ? config.dump() : data);
  }
  write_text(folder / "changed.keras", zip(parts));
  return folder / "changed.keras";
}

Json config_of(const std::string& file) { return Json::parse(members(versions + file).at("config.json")); }

const std::string row_layers = R"(
layers:
  - dense: {name: FIRST, units: 4}
  - activation: relu
  - dense: {name: SECOND, units: 4}
  - gru: {name: lstm, units: 4}
  - dense: {name: LAST, units: 4}
)";

std::string row_model(const std::string& weights, const std::string& first, const std::string& second,
                      const std::string& last) {
  std::string text = row_layers;
  for (const auto& [word, name] : {std::pair("FIRST", first), {"SECOND", second}, {"LAST", last}}) {
    text.replace(text.find(word), std::string(word).size(), name);
  }
  return text + "weights: " + weights + "\n";
}

double row_difference(const std::string& model) {
  const Arrays golden(golden_of("row"));
  const Shape batch = golden.shape("input0");
  return relative_difference(predict(model, load(model, batch.without_front()), batch, golden.values("input0")),
                             golden.values("output0"));
}

// Keras 2.12, and all of Keras 2 in .h5 files, confuse a layer's call in the inner network with its call in the outer
// one.
bool is_broken(const std::string& name) {
  return name == "shared-2.12.keras" || name == "h5-2.12.zip/shared.h5" || name == "h5-2.15.zip/shared.h5";
}

void check_outputs(const std::string& path, const std::string& name, const std::string& network) {
  CAPTURE(name);
  if (is_broken(name)) {
    CHECK(contains(failure_of([&] { import_keras(path, "w"); }), "no layer computes the output"));
  } else {
    CHECK(imported_difference(path, golden_of(network)) < 1e-4);
  }
}

}  // namespace

TEST_CASE("networks saved by any version of Keras have its outputs") {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(versions)) {
    const std::string file = entry.path().filename().string();
    if (!file.ends_with(".keras")) continue;
    check_outputs(versions + file, file, file.substr(0, file.find('-')));
    ++count;
  }
  CHECK(count >= 30);
}

TEST_CASE("networks in .h5 files of any version of Keras have its outputs") {
  const TemporaryFolder folder;
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(versions)) {
    const std::string archive = entry.path().filename().string();
    if (!archive.ends_with(".zip") || archive == "h5-files.zip") continue;
    for (const auto& [file, data] : members(versions + archive)) {
      write_text(folder / file, data);
      check_outputs(folder / file, archive + "/" + file, file.substr(0, file.find('.')));
      ++count;
    }
  }
  CHECK(count >= 12);
}

TEST_CASE("an .h5 file's groups assign weights to layers, whatever scopes the weights were created in") {
  const TemporaryFolder folder;
  for (const char* file : {"numbered.h5", "model.h5", "none.h5", "swapped.h5"}) {
    CAPTURE(file);
    const std::string path = extracted(folder, "h5-files.zip", file);
    CHECK(imported_difference(path, golden_of("row")) < 1e-4);
    CHECK(row_difference(row_model(path, "dense_1", "dense_2", "dense")) < 1e-4);
  }
}

TEST_CASE("an HDF5 group with many members whose names are not ASCII is read whole") {
  const TemporaryFolder folder;
  const auto file = open_weights(extracted(folder, "h5-files.zip", "links.h5"));
  REQUIRE(file->tensors().size() == 300);
  for (std::size_t i = 0; i < 300; ++i) {
    const std::string& name = file->tensors()[i].name;
    float value = -1;
    file->read(i, &value);
    CHECK(name == "layer/größe " + std::to_string(static_cast<int>(value)));
  }
}

TEST_CASE("a .keras file whose groups do not match its layers is refused") {
  const TemporaryFolder folder;
  for (const char* file : {"row-2.12.keras", "row-2.14.keras", "row-2.15.keras", "row-3.3.keras"}) {
    CAPTURE(file);
    Json config = config_of(file);
    Json& layers = config["config"]["layers"];
    CHECK(imported_difference(with_config(folder, file, config), golden_of("row")) < 1e-4);
    Json fewer = config;
    fewer["config"]["layers"].erase(1);
    CHECK(contains(failure_of([&] { import_keras(with_config(folder, file, fewer), "w"); }),
                   "the file does not name its layers, and its groups do not match"));
    for (Json& layer : layers) {
      if (layer["class_name"] == "Dense") layer["config"]["use_bias"] = false;
    }
    CHECK(contains(failure_of([&] { import_keras(with_config(folder, file, config), "w"); }), "has 1 weight, but "));
  }
}

TEST_CASE("weights of a file without layer names are not matched by names that are equal by chance") {
  const TemporaryFolder folder;
  write_text(folder / "row.weights.h5", members(versions + "row-3.3.keras").at("model.weights.h5"));
  const std::string path = folder / "row.weights.h5";
  // Counted by class, the group "dense" is the first layer, but in this network the last layer has that name.
  const std::string failure = failure_of([&] { load(row_model(path, "dense_1", "dense_2", "dense"), Shape{4, 4}); });
  INFO(failure);
  CHECK(contains(failure, "layers/dense_1/0"));
  const std::string with_rules = "{file: " + path +
                                 ", names: {keras: [^a$ -> layers/dense, ^b$ -> layers/dense_1, ^c$ -> layers/dense_2, "
                                 "^lstm$ -> layers/gru]}}";
  CHECK(row_difference(row_model(with_rules, "a", "b", "c")) < 1e-4);
  // Files of newer versions name the layers.
  write_text(folder / "named.weights.h5", members(versions + "row-3.15.keras").at("model.weights.h5"));
  CHECK(row_difference(row_model(folder / "named.weights.h5", "dense_1", "dense_2", "dense")) < 1e-4);
}

TEST_CASE("groups without layer names are matched if their shapes decide the layer, and refused otherwise") {
  const TemporaryFolder folder;
  const std::string path = folder / "counted.weights.h5";
  std::vector<float> values(16);
  std::iota(values.begin(), values.end(), 0.0f);
  const auto write = [&](std::int64_t inputs, std::int64_t units) {
    Hdf5Group root;
    const auto add = [&](const std::string& group, std::int64_t in, std::int64_t out) {
      auto& variables = root.groups["layers"].groups[group].groups["vars"].data_sets;
      variables["0"] = {Shape{in, out}, values.data()};
      variables["1"] = {Shape{out}, values.data()};
    };
    add("dense", inputs, 3);
    add("dense_1", 3, units);
    trainctl::write_file(path, 0, [&](OutputFile& file) { write_hdf5(file, root); });
  };
  // Each layer has the name of the other layer's group.
  const auto weights = [&](std::int64_t inputs, std::int64_t hidden, std::int64_t units) {
    return load(format("layers: [{{dense: {{name: dense_1, units: {}}}}}, {{dense: {{name: dense, units: {}}}}}]\n"
                       "weights: {}\n",
                       hidden, units, path),
                Shape{inputs});
  };
  write(4, 2);
  const LoadedWeights loaded = weights(4, 3, 2);
  const auto found = by_name(loaded.snapshot.weights);
  CHECK(found.at("dense_1/kernel")->shape == Shape{4, 3});
  CHECK(found.at("dense_1/kernel")->view.as<const float>()[11] == 11);
  write(3, 3);
  const std::string square = failure_of([&] { weights(3, 3, 3); });
  INFO(square);
  CHECK(contains(square, "a Keras before 3.6 counted its layers by class and did not name them"));
}

TEST_CASE("the error for an operation without a counterpart names it and what it computes") {
  const TemporaryFolder folder;
  Json config = config_of("operations-2.15.keras");
  for (Json& layer : config["config"]["layers"]) {
    if (layer["class_name"] == "TFOpLambda" && layer["config"]["function"] == "math.multiply") {
      layer["config"]["function"] = "math.pow";
    }
    if (layer["class_name"] == "Bidirectional" && layer["config"]["merge_mode"] == "sum") {
      layer["config"]["merge_mode"] = true;
    }
  }
  const std::string path = with_config(folder, "operations-2.15.keras", config);
  const std::string failure = failure_of([&] { import_keras(path, "w"); });
  INFO(failure);
  CHECK(contains(failure, "TFOpLambda 'tf.math.multiply"));
  CHECK(contains(failure, "it computes math.pow with the number 0.166"));
  CHECK(contains(failure, "Bidirectional 'sum_of_both': merge_mode: true has no counterpart"));
}

TEST_CASE("an operation with options is refused by its name, in which part of the file the name may be") {
  const TemporaryFolder folder;
  for (const bool in_config : {false, true}) {
    CAPTURE(in_config);
    Json config = config_of("operations-3.3.keras");
    for (Json& layer : config["config"]["layers"]) {
      if (layer["module"].get<std::string>().find(".ops.") == std::string::npos || layer["class_name"] != "Subtract") {
        continue;
      }
      layer["class_name"] = "Mean";
      layer["config"] = {{"axis", 1}, {"keepdims", false}};
      if (in_config) layer["config"]["name"] = layer["name"];
    }
    const std::string failure =
        failure_of([&] { import_keras(with_config(folder, "operations-3.3.keras", config), "w"); });
    INFO(failure);
    CHECK(contains(failure, "Mean 'subtract"));
    CHECK(contains(failure, "it computes mean"));
  }
}

TEST_CASE("layers in half precision are noted, and layers with quantized weights are refused") {
  const TemporaryFolder folder;
  const auto with_dtype = [&](const Json& options) {
    Json config = config_of("row-3.15.keras");
    for (Json& layer : config["config"]["layers"]) {
      if (layer["class_name"] == "Dense") layer["config"]["dtype"] = {{"class_name", "Policy"}, {"config", options}};
    }
    return with_config(folder, "row-3.15.keras", config);
  };
  const ImportedNetwork network = import_keras(with_dtype({{"name", "mixed_float16"}}), "w");
  REQUIRE(network.notes.size() == 1);
  CHECK(
      contains(network.notes[0], "Keras computes 3 layers in mixed_float16; here all layers are computed in float32"));
  CHECK(import_keras(with_dtype({{"name", "float64"}}), "w").notes.empty());
  const std::string failure = failure_of([&] {
    import_keras(with_dtype({{"mode", "int8"}, {"source_name", "float32"}}), "w");
  });
  INFO(failure);
  CHECK(contains(failure, "Dense 'dense': its weights are quantized (int8), which has no counterpart in trainctl"));
  CHECK(std::count(failure.begin(), failure.end(), '\n') == 2);  // a line for each of the three layers
}

TEST_CASE("an activation without a counterpart is one error") {
  const TemporaryFolder folder;
  Json config = config_of("row-3.15.keras");
  config["config"]["layers"].back()["config"]["activation"] = "sparsemax";
  const std::string failure = failure_of([&] { import_keras(with_config(folder, "row-3.15.keras", config), "w"); });
  INFO(failure);
  CHECK(contains(failure, "Dense 'dense': activation: \"sparsemax\" has no counterpart in trainctl"));
  CHECK_FALSE(contains(failure, "\n"));
}

TEST_CASE("layers that do nothing in prediction are left out and reported") {
  for (const char* file : {"operations-2.12.keras", "operations-3.15.keras"}) {
    CAPTURE(file);
    const ImportedNetwork network = import_keras(versions + file, "w");
    REQUIRE(network.notes.size() == 1);
    CHECK(contains(network.notes[0], "Left out, since these layers do nothing in prediction: RandomFlip 'flip'."));
    CHECK_FALSE(contains(model_of(network), "flip"));
    CHECK(contains(model_of(network), "name: layer_scale"));
  }
}

}  // namespace trainctl::test::keras_versions_test
