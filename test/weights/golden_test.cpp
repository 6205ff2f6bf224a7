// Files of weights that PyTorch and Keras wrote: the same values and the same outputs here.
#include "test/catch.h"
#include "test/weights/support.h"

using namespace trainctl;
using namespace trainctl::test;

TEST_CASE("a small network has PyTorch's and Keras' outputs with their files") {
  const std::string name = GENERATE("small.safetensors", "small.weights.h5", "small.h5", "small.keras");
  CAPTURE(name);
  const LoadedWeights weights = load(small_model(golden + name), small_image());
  const Arrays values(golden + "values.safetensors");
  CHECK(weights_sha256(weights.snapshot.weights) == values.file.header().metadata.at("weights_sha256"));
  const std::vector<float> outputs = predict(small_layers, weights, values.shape("input"), values.values("input"));
  CHECK(relative_difference(outputs, values.values("output")) < 1e-5);
}

TEST_CASE("weights in half and double precision are read as float32") {
  const std::string name = GENERATE("float16", "bfloat16", "float64");
  CAPTURE(name);
  const std::string rest = ", allow_missing: true";  // the files hold the features alone
  const auto load_file = [&](const std::string& file) {
    return load(small_model(golden + file + ".safetensors", rest), small_image());
  };
  const LoadedWeights weights = load_file(name), expected = load_file(name + "-as-float32");
  CHECK(same(weights.snapshot.weights, expected.snapshot.weights));
}

TEST_CASE("a network begins with the weights of a checkpoint, by its folder, its file or its run directory") {
  const TemporaryFolder folder;
  const LoadedWeights from_keras = load(small_model(golden + "small.keras"), small_image());
  Snapshot snapshot = from_keras.snapshot;
  snapshot.mesh = {1, 1, 1};
  const std::string checkpoint = save(CheckpointStore(folder.path, {}), snapshot, true);
  for (const std::string& path : {checkpoint, checkpoint + "/weights.safetensors", folder.path}) {
    CAPTURE(path);
    CHECK(same(load(small_model(path), small_image()).snapshot.weights, from_keras.snapshot.weights));
  }
}

TEST_CASE("tensors that a file does not give keep their initial values") {
  const LoadedWeights all = load(small_model(golden + "small.h5"), small_image());
  const LoadedWeights some = load(small_model(golden + "small.h5", ", skip: [predictions/*, 'bn/m*']"), small_image());
  const auto full = by_name(all.snapshot.weights);
  for (const NamedTensor& tensor : some.snapshot.weights) {
    CAPTURE(tensor.name);
    const bool skipped = tensor.name.starts_with("predictions/") || tensor.name.starts_with("bn/m");
    CHECK(same({tensor}, {*full.at(tensor.name)}) != skipped);
    if (tensor.name == "bn/moving_variance") CHECK(*tensor.view.as<float>() == 1);
    if (tensor.name == "predictions/bias") CHECK(*tensor.view.as<float>() == 0);
  }
}
