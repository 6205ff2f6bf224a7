// Tests imported networks of Keras: their outputs, the written configs, and errors for layers without a counterpart.
#include <filesystem>

#include "core/base/format.h"
#include "core/base/json.h"
#include "io/keras/compiled.h"
#include "io/keras/import.h"
#include "test/catch.h"
#include "test/io/keras/imported.h"
#include "test/io/weights/support.h"
#include "test/support/files.h"

namespace trainctl::test::import_test {
namespace {

void check_contains(const std::string& text, const std::string& part) {
  INFO(text);
  CAPTURE(part);
  CHECK(text.find(part) != std::string::npos);
}

const std::string keras_golden = TRAINCTL_SOURCE_DIR "/test/golden/keras/";

double difference(const std::string& file) {
  const std::string stem = std::filesystem::path(file).stem().string();
  return imported_difference(keras_golden + file, keras_golden + stem + ".safetensors");
}

std::string errors_of(const std::string& path) {
  try {
    import_keras(path, "weights.safetensors");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("imported networks have Keras' outputs") {
  for (const char* file :
       {"cnn.keras",        "functional.keras",   "sequence.keras",   "legacy.h5",         "scaled.keras",
        "slashes.h5",       "stochastic.keras",   "directions.keras", "mobilenet.keras",   "masked.keras",
        "attention.keras",  "blocks.keras",       "steps.keras",      "limits.keras",      "translation.keras",
        "volumes.keras",    "largest.keras",      "films.keras",      "film_states.keras", "spectrogram.keras",
        "spectral.keras",   "spectral_layers.h5", "cells.keras",      "cells_layers.h5",   "each_image.keras",
        "activations.keras"}) {
    CAPTURE(file);
    CHECK(difference(file) < 1e-4);
  }
}

TEST_CASE("an imported config sets what differs from the defaults, and names layers that others refer to") {
  const ImportedNetwork cnn = import_keras(keras_golden + "cnn.keras", "cnn.safetensors");
  for (const char* line :
       {"- {zero_padding2d: [[1, 2], [0, 3]]}\n",
        "kernel_size: [3, 5]\n        strides: 2\n        padding: same\n        kernel_initializer: he_normal\n",
        "- {batch_normalization: {name: norm, momentum: 0.9, epsilon: 1e-05}}\n", "- {activation: relu6}\n",
        "- {activation: {activation: leaky_relu, negative_slope: 0.1}}\n", "- {dropout: 0.5}\n", "- flatten\n",
        "kernel_regularizer: {l1: 1e-05, l2: 0.0001}", "activation: {name: leaky_relu, negative_slope: 0.2}",
        "weights: cnn.safetensors\n", "# Samples: [16, 12, 3]\n"}) {
    check_contains(cnn.config, line);
  }
  const ImportedNetwork functional = import_keras(keras_golden + "functional.keras", "f.safetensors");
  check_contains(functional.config, "inputs: [image, other]");
  check_contains(functional.config, "outputs: [classes, value]");
  check_contains(functional.config, "freeze: [shared]");
  check_contains(functional.config, "name: head.mix");
  const ImportedNetwork stochastic = import_keras(keras_golden + "stochastic.keras", "s.safetensors");
  check_contains(stochastic.config, "- {dropout: {rate: 0.3, noise_shape: [1, 1, -1]}}");
  check_contains(stochastic.config, "rate: 0.2, noise_shape: [1, 1, 1]}}");
  const ImportedNetwork steps = import_keras(keras_golden + "steps.keras", "s.safetensors");
  for (const char* line : {"- {zero_padding1d: [1, 3]}\n", "- {zero_padding1d: 2}\n", "- {cropping1d: [2, 4]}\n",
                           "- cropping1d\n", "- {upsampling1d: 3}\n", "- upsampling1d\n"}) {
    check_contains(steps.config, line);
  }
  const ImportedNetwork sequence = import_keras(keras_golden + "sequence.keras", "s.safetensors");
  check_contains(sequence.config, "loss: sparse_categorical_crossentropy");
  check_contains(sequence.config, "optimizer: {name: adam, learning_rate: 0.003, epsilon_hat: true}");
}

TEST_CASE("attention is imported with its inputs, and masks only if they follow from padding") {
  const ImportedNetwork attention = import_keras(keras_golden + "attention.keras", "a.safetensors");
  for (const char* line : {"mask_zero: true", "- {additive_attention: {name: additive, from: [sum, both]}}",
                           "from: [additive, both, both]", "use_causal_mask: true", "from: [heads, both]",
                           "- {dot: {name: product, from: [grouped, mean], axes: [2, 1], normalize: true}}"}) {
    check_contains(attention.config, line);
  }
  REQUIRE(attention.notes.size() == 1);
  check_contains(attention.notes[0], "Padding masks go on after layers of attention");
  check_contains(attention.notes[0], "A query that sees no key, as in a sample that is only padding, gets zeros");
  const ImportedNetwork blocks = import_keras(keras_golden + "blocks.keras", "b.safetensors");
  check_contains(blocks.config, "activation: gelu\n        layer_norm_epsilon: 0.001\n");
  check_contains(blocks.config, "from: [target, encoder]");
  check_contains(errors_of(keras_golden + "own_mask.keras"), "GRU 'gru': its call argument mask has no counterpart");
}

TEST_CASE("recurrent layers are imported with their states") {
  const std::string config = import_keras(keras_golden + "translation.keras", "t.safetensors").config;
  for (const char* line : {"return_state: true", "dropout: 0.25", "recurrent_dropout: 0.125",
                           "initial_state: [encoder/hidden_state, encoder/cell_state]", "from: encoder/cell_state",
                           "initial_state: [gru/hidden_state]", "outputs: [words, gru_hidden_state]"}) {
    check_contains(config, line);
  }
}

TEST_CASE("convolutional LSTMs are imported with their states") {
  const std::string films = import_keras(keras_golden + "film_states.keras", "f.safetensors").config;
  for (const char* line : {"return_state: true", "dropout: 0.25", "recurrent_dropout: 0.125",
                           "initial_state: [encoder/hidden_state, encoder/cell_state]", "from: encoder/cell_state"}) {
    check_contains(films, line);
  }
}

TEST_CASE("layers with spectral normalization are imported with their vectors") {
  for (const char* file : {"spectral.keras", "spectral_layers.h5"}) {
    CAPTURE(file);
    const ImportedNetwork network = import_keras(keras_golden + file, "s.safetensors");
    for (const char* line :
         {"name: conv\n        power_iterations: 2\n"
          "        layers: [{conv2d: {filters: 4, kernel_size: 3, activation: tanh}}]\n",
          "name: inner.up", "layers: [{dense: {units: 5, kernel_initializer: he_normal}}]", "freeze: [dense]"}) {
      check_contains(network.config, line);
    }
    const Arrays golden(keras_golden + std::filesystem::path(file).stem().string() + ".safetensors");
    const auto loaded = by_name(network.weights.snapshot.weights);
    for (const auto& [own, keras] : {std::pair("conv", "conv"), {"inner.up", "inner/up"}, {"dense", "dense"}}) {
      const NamedTensor& vector = *loaded.at(format("{}/vector_u", own));
      const float* const first = vector.view.as<const float>();
      CHECK(std::vector<float>(first, first + vector.view.count) == golden.values(format("{}/vector_u", keras)));
    }
  }
}

TEST_CASE("names that a config does not allow are replaced by unique ones") {
  const ImportedNetwork scaled = import_keras(keras_golden + "scaled.keras", "s.safetensors");
  check_contains(scaled.config, "name: first_conv");
  check_contains(scaled.config, "- {rescaling: {scale: 0.00784313725490196, offset: -1}}");
  check_contains(scaled.config, "- {normalization: {mean: [0.1], variance: [2]}}");
  const ImportedNetwork slashes = import_keras(keras_golden + "slashes.h5", "s.safetensors");
  for (const char* name : {"name: block_a_dense", "name: block_b,", "name: block_b_2"}) {
    check_contains(slashes.config, name);
  }
}

TEST_CASE("names in other scripts than Latin are kept") {
  const ImportedNetwork network = import_keras(keras_golden + "directions.keras", "d.safetensors");
  for (const char* line : {"name: 両方向.forward_layer", "name: été.backward_layer", "name: 出力"}) {
    check_contains(network.config, line);
  }
  CHECK(network.config.find("name: _") == std::string::npos);
}

TEST_CASE("open dimensions of a network are reported, or set by --input-shape") {
  const std::string path = keras_golden + "scaled.keras";
  const auto with = [&](const std::vector<Shape>& shapes) { return import_keras(path, "s.safetensors", shapes); };
  const std::string note =
      "Input 'an_image' leaves dimensions open (None), which were taken as 256 here: [256, 256, 3].";
  REQUIRE(with({}).notes.size() == 1);
  check_contains(with({}).notes[0], note);
  check_contains(with({}).config, "# " + note);
  CHECK(with({{9, 7, 3}}).notes.empty());
  check_contains(with({{9, 7, 3}}).config, "# Samples: [9, 7, 3]\n");
  const auto failure = [&](const std::vector<Shape>& shapes) { return failure_of([&] { with(shapes); }); };
  check_contains(failure({{9, 7, 4}}),
                 "--input-shape 9x7x4 does not fit input 'an image', which is [null,null,null,3]");
  check_contains(failure({{9, 7}}), "--input-shape 9x7 does not fit input 'an image'");
  check_contains(failure({{9, 7, 3}, {5}}),
                 "--input-shape is given 2 times, but the network has 1 input with open dimensions (None)");
}

TEST_CASE("a recurrent layer made of a cell and a layer for each step are imported as layers of the config") {
  const ImportedNetwork cells = import_keras(keras_golden + "cells.keras", "c.safetensors");
  for (const char* line :
       {"- {gru: {name: gated, units: 4, return_sequences: true}}", "- {simple_rnn: {name: simple, ",
        "- {time_distributed: {name: each, ", "dense: {units: 4, activation: squareplus, name: layer}",
        "- depthwise_conv1d:", "- separable_conv1d:", "activation: log_softmax"}) {
    check_contains(cells.config, line);
  }
}

TEST_CASE("the error for a layer that trainctl computes before the network says what to write instead") {
  const TemporaryFolder folder;
  const auto error_of_layer = [&](Json layer) {
    Json config = Json::parse(R"({"class_name": "Sequential", "config": {"name": "s", "layers": [
      {"class_name": "InputLayer", "config": {"name": "i", "batch_shape": [null, 8, 6, 3]}}, null]}})");
    config["config"]["layers"][1] = std::move(layer);
    const std::string path = folder / "n.keras";
    write_text(path, zip({{"config.json", json_text(config)},
                          {"metadata.json", R"({"keras_version": "3.15.1"})"},
                          {"model.weights.h5", "-"}}));
    return errors_of(path);
  };
  const auto layer = [](const std::string& kind, const std::string& config) {
    return Json{{"class_name", kind}, {"config", Json::parse(config)}};
  };
  check_contains(
      error_of_layer(layer("Resizing", R"({"name": "r", "height": 24, "width": 32})")),
      "Resizing 'r': trainctl does this before the network: save the network without this layer, and add the "
      "step {resize: [24, 32]} to the `transform` of the data");
  check_contains(error_of_layer(layer("CenterCrop", R"({"name": "r", "height": 4, "width": 5})")),
                 "add the step {center_crop: [4, 5]} to");
  check_contains(
      error_of_layer(layer("RNN", R"({"name": "r", "cell": {"class_name": "StackedRNNCells", "config": {}}})")),
      "RNN 'r': StackedRNNCells has no counterpart in trainctl: use one recurrent layer for each cell, all "
      "except the last with return_sequences=True");
  check_contains(error_of_layer(layer("RNN", R"({"name": "r", "cell": {"class_name": "MyCell", "config": {}}})")),
                 "its cell MyCell has no counterpart in trainctl, which has LSTMCell, GRUCell and SimpleRNNCell");
}

TEST_CASE("all parts of a Keras network that have no counterpart are reported together") {
  const std::string errors = errors_of(keras_golden + "unknown.keras");
  for (const char* words : {"Conv2D 'penalised': activity_regularizer",
                            "AdaptiveAveragePooling2D 'adaptive': this layer has no counterpart"}) {
    check_contains(errors, words);
  }
}

TEST_CASE("an optimizer of Keras is imported as the one that takes the same steps") {
  const auto imported = [](const std::string& name, const std::string& options) {
    return compiled_with(Json::parse(R"({"optimizer": {"class_name": ")" + name + R"(", "config": )" + options + "}}"));
  };
  const auto optimizer = [&](const std::string& name, const std::string& options) -> std::string {
    const CompiledWith compiled = imported(name, options);
    const Node* found = compiled.train.find("optimizer");
    return found == nullptr ? "left out" : flow_text(*found);
  };
  CHECK(optimizer("Adam", "{}") == "{name: adam, epsilon_hat: true}");
  CHECK(optimizer("Adam", R"({"weight_decay": null, "jit_compile": true, "beta_1": 0.8})") ==
        "{name: adam, beta_1: 0.8, epsilon_hat: true}");
  // Keras decouples weight decay from the gradient in all optimizers.
  CHECK(optimizer("Adam", R"({"weight_decay": 0.03})") == "{name: adamw, weight_decay: 0.03, epsilon_hat: true}");
  CHECK(optimizer("Adafactor", R"({"weight_decay": 0.03, "relative_step": false})") ==
        "{name: adafactor, weight_decay: 0.03}");
  CHECK(optimizer("RMSprop", R"({"rho": 0.8, "centered": false})") ==
        "{name: rmsprop, rho: 0.8, epsilon_in_root: true}");
  CHECK(optimizer("Adagrad", "{}") == "{name: adagrad, epsilon_in_root: true}");
  CHECK(optimizer("Nadam", "{}") == "nadam");
  CHECK(optimizer("Ftrl", "{}") == "ftrl");
  CHECK(optimizer("Adamax", R"({"beta_2": 0.9})") == "{name: adamax, beta_2: 0.9}");
  CHECK(optimizer("Adam", R"({"amsgrad": true})") == "{name: adam, amsgrad: true, epsilon_hat: true}");
  CHECK(optimizer("Unknown", "{}") == "left out");
  CHECK(optimizer("SGD", R"({"weight_decay": null, "learning_rate": 0.5, "momentum": 0.9})") ==
        "{name: sgd, learning_rate: 0.5, momentum: 0.9}");
  const CompiledWith sgd = imported("SGD", R"({"weight_decay": 0.03, "learning_rate": 0.5})");
  CHECK(sgd.train.find("optimizer") == nullptr);
  CHECK(sgd.other.size() == 1);
}

}  // namespace trainctl::test::import_test
