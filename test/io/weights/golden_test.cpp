// Tests files of weights from PyTorch and Keras: they have the same values and outputs here.
#include "test/catch.h"
#include "test/io/weights/support.h"

namespace trainctl::test::golden_test {

TEST_CASE("a small network has PyTorch's and Keras' outputs with their files") {
  const std::string name = GENERATE("small.safetensors", "small.weights.h5", "small.h5", "small.keras");
  CAPTURE(name);
  const LoadedWeights weights = load(small_model(golden + name), small_image());
  const Arrays values(golden + "values.safetensors");
  CHECK(weights_sha256(weights.snapshot.weights) == values.file.header().metadata.at("weights_sha256"));
  const std::vector<float> outputs = predict(small_layers, weights, values.shape("input"), values.values("input"));
  CHECK(relative_difference(outputs, values.values("output")) < 1e-5);
}

TEST_CASE("recurrent layers have PyTorch's outputs with its weights") {
  const std::string layers = R"(
layers:
  - lstm: {name: l0, units: 4, return_sequences: true}
  - lstm: {name: l1, units: 4, return_sequences: true}
  - gru: {name: gru, units: 3, return_sequences: true}
  - gru: {name: forward, units: 2}
  - gru: {name: backward, units: 2, go_backwards: true, from: gru}
  - concatenate: {from: [forward, backward]}
  - dense: {name: head, units: 2}
)";
  const auto weights_from = [&](const std::string& file) {
    return layers + "weights: {file: " + file +
           ", names: {torch: ['^l{n}$ -> lstm_l{n}', ^forward$ -> both, ^backward$ -> both_l0_reverse]}}\n";
  };
  const Arrays values(golden + "recurrent-values.safetensors");
  const Shape sample{6, 5};
  const LoadedWeights weights = load(weights_from(golden + "recurrent.safetensors"), sample);
  const std::vector<float> outputs = predict(layers, weights, values.shape("input"), values.values("input"));
  CHECK(relative_difference(outputs, values.values("output")) < 1e-5);

  // The bias is the sum of PyTorch's two, so a missing second bias is an error.
  const TemporaryFolder folder;
  std::string bytes = read_text(golden + "recurrent.safetensors");
  bytes.replace(bytes.find("lstm.bias_hh_l1"), 15, "lstm.bias_hh_l7");
  write_text(folder / "lacks.safetensors", bytes);
  const std::string failure = failure_of([&] { load(weights_from(folder / "lacks.safetensors"), sample); });
  INFO(failure);
  CHECK(failure.find("'l1/bias' is missing (by torch's names: 'lstm.bias_hh_l1')") != std::string::npos);
  CHECK(failure.find("no tensor of the network uses 'lstm.bias_hh_l7' (16)") != std::string::npos);
}

TEST_CASE("weights in half and double precision are read as float32") {
  const std::string name = GENERATE("float16", "bfloat16", "float64");
  CAPTURE(name);
  const std::string rest = ", allow_missing: true";  // the files have the features only
  const auto load_file = [&](const std::string& file) {
    return load(small_model(golden + file + ".safetensors", rest), small_image());
  };
  const LoadedWeights weights = load_file(name), expected = load_file(name + "-as-float32");
  CHECK(same(weights.snapshot.weights, expected.snapshot.weights));
}

TEST_CASE("a network can start with a checkpoint's weights, given as folder, file or run directory") {
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

TEST_CASE("tensors named in skip keep their initial values") {
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

}  // namespace trainctl::test::golden_test
