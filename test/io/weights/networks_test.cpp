// Tests that presets load the tensors of the networks that they are named after. A test that is run by hand compares
// their outputs.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

#include "core/base/format.h"
#include "io/weights/match.h"
#include "test/catch.h"
#include "test/io/weights/support.h"

namespace trainctl::test::networks_test {
namespace {

// A file of weights with names and shapes, but without values.
struct NamesOnly final : WeightsFile {
  WeightsOrigin from;

  explicit NamesOnly(WeightsOrigin o) : from(o) {}
  WeightsOrigin origin() const override { return from; }
  void read(std::size_t, float*) const override {}
  void add(const std::string& name, const std::string& sizes) {
    std::istringstream text(sizes);
    std::vector<std::int64_t> shape;
    for (std::string size; std::getline(text, size, 'x');) shape.push_back(std::stoll(size));
    tensors_.push_back({name, Shape(shape)});
  }
};

}  // namespace

TEST_CASE("presets load every tensor of torchvision's, timm's and Keras' networks") {
  std::map<std::pair<std::string, std::string>, NamesOnly> files;
  std::ifstream list(golden + "names.txt");
  for (std::string preset, program, name, shape; list >> preset >> program >> name >> shape;) {
    const WeightsOrigin origin = program == "keras" ? WeightsOrigin::keras : WeightsOrigin::safetensors;
    files.try_emplace({preset, program}, origin).first->second.add(name, shape);
  }
  CHECK(files.size() == 25);
  for (const auto& [key, file] : files) {
    const auto& [preset, program] = key;
    CAPTURE(preset, program);
    const PretrainedNetwork network("preset: " + preset + "\nweights: w.safetensors\n", {224, 224, 3});
    const std::vector<WantedTensor> wanted = wanted_tensors(network.graph);
    Reader reader;
    const WeightsMatch match = match_weights(wanted, file, *network.model.weights, reader);
    for (const Diagnostic& diagnostic : reader.diagnostics()) UNSCOPED_INFO(to_string(diagnostic));
    CHECK(reader.ok());
    CHECK(match.loaded.size() == wanted.size());
    std::set<std::size_t> used;  // three tensors of an attention are one tensor of the file
    for (const WeightsMatch::Pair& pair : match.loaded) used.insert(pair.stored.begin(), pair.stored.end());
    CHECK(file.tensors().size() == used.size());
  }
}

// TRAINCTL_NETWORKS is a folder that scripts/bench/pretrained-networks filled.
TEST_CASE("presets have the outputs of torchvision's and Keras' networks", "[.networks]") {
  const char* folder = std::getenv("TRAINCTL_NETWORKS");
  REQUIRE(folder != nullptr);
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string path = entry.path().string();
    const Arrays values(path + "/values.safetensors");
    const Shape& batch = values.shape("input");
    std::string yaml;
    LoadedWeights weights;
    if (fs::exists(path + "/model.yaml")) {
      yaml = read_text(path + "/model.yaml");
      weights = load(yaml, batch.without_front());
    } else {
      ImportedNetwork network = import_keras(path + "/weights.keras", "weights.safetensors");
      yaml = model_of(network);
      weights = std::move(network.weights);
    }
    const double difference =
        relative_difference(predict(yaml, weights, batch, values.values("input")), values.values("output"));
    std::cout << format("{:40} {:.2e}\n", entry.path().filename().string(), difference);
    CHECK(difference < 1e-4);
  }
}

}  // namespace trainctl::test::networks_test
