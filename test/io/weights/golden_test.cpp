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

TEST_CASE("layers over volumes, and a dense layer after them, have PyTorch's outputs with its weights") {
  const std::string layers = R"(
layers:
  - conv3d: {name: conv, filters: 6, kernel_size: [2, 3, 3], strides: [1, 2, 1], padding: [0, 1, 1]}
  - batch_normalization: {name: bn, epsilon: 1e-5}
  - activation: relu
  - conv3d_transpose: {name: up, filters: 4, kernel_size: [2, 1, 2], strides: [2, 1, 2]}
  - max_pooling3d
  - conv3d: {name: grouped, filters: 4, kernel_size: 2, groups: 2, use_bias: false}
  - average_pooling3d: {pool_size: [1, 1, 2]}
  - flatten
  - dense: {name: head, units: 3}
)";
  const Arrays values(golden + "volumes-values.safetensors");
  const Shape batch = values.shape("input");
  const LoadedWeights weights = load(layers + "weights: " + golden + "volumes.safetensors\n", batch.without_front());
  const std::vector<float> outputs = predict(layers, weights, batch, values.values("input"));
  CHECK(relative_difference(outputs, values.values("output")) < 1e-5);
}

// The networks of test/golden/vision_transformers.py.
TEST_CASE("vision transformers, ConvNeXts and the MLP-Mixer have PyTorch's outputs with its weights") {
  const std::string vit = "{classes: 5, patch: 4, layers: 2, heads: 2, head_size: 4, width: 8, mlp: 20}";
  const std::string convnext =
      "{classes: 5, depth_1: 1, depth_2: 2, depth_3: 1, depth_4: 1, width_1: 4, width_2: 6, width_3: 8, width_4: 10, "
      "mlp_1: 16, mlp_2: 24, mlp_3: 32, mlp_4: 40}";
  const std::string mixer = "{classes: 5, patch: 4, patches: 9, layers: 2, width: 8, patches_mlp: 6, mlp: 20}";
  struct Case {
    std::string preset, with, file;
  };
  const Case network =
      GENERATE_COPY(Case{"vit_b16", vit, "vit_torchvision"}, Case{"vit_s16", vit, "vit_timm"},
                    Case{"deit_tiny", vit, "vit_timm"}, Case{"convnext_tiny", convnext, "convnext_torchvision"},
                    Case{"convnext_tiny", convnext, "convnext_timm"}, Case{"mlp_mixer", mixer, "mixer_timm"});
  CAPTURE(network.preset, network.file);
  const Arrays values(golden + "vision-values.safetensors");
  const Shape batch = values.shape(network.file + "/input");
  const std::string model = "preset: " + network.preset + "\nwith: " + network.with + "\n";
  const LoadedWeights weights =
      load(model + "weights: " + golden + network.file + ".safetensors\n", batch.without_front());
  const std::vector<float> outputs = predict(model, weights, batch, values.values(network.file + "/input"));
  CHECK(relative_difference(outputs, values.values(network.file + "/output")) < 1e-5);
}

TEST_CASE("kernels of queries, keys and values in one tensor must have equal sizes") {
  const std::string other = "with: {classes: 5, patch: 4, layers: 2, heads: 2, head_size: 3, width: 6, mlp: 20}";
  const std::string failure = failure_of([&] {
    load("preset: vit_b16\n" + other + "\nweights: " + golden + "vit_torchvision.safetensors\n", {12, 12, 3});
  });
  INFO(failure);
  CHECK(failure.find("'encoder/0/attention/attn/key/kernel' is 6x6, but "
                     "'encoder.layers.encoder_layer_0.self_attention.in_proj_weight' in the file is 24x8") !=
        std::string::npos);
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
