// Tests export: its files, output and errors. The outputs of exported networks are tested in test/onnx.
#include <cstring>
#include <filesystem>

#include "io/checkpoint/safetensors.h"
#include "io/weights/weights_file.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/files.h"

namespace trainctl::test::export_test {
namespace {

// Trains the run `runs/net` on images of bytes with two classes.
void train(const Folder& folder) {
  std::vector<std::uint8_t> x(20 * 6 * 5 * 1);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::uint8_t>(i * 7919 % 251);
  std::vector<std::int64_t> y(20);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = static_cast<std::int64_t>(i % 2);
  folder.write("x.npy", npy("|u1", "(20, 6, 5, 1)", raw(x)));
  folder.write("y.npy", npy("<i8", "(20,)", raw(y)));
  folder.write("net.yaml", R"(
data: {dataset: npy, x: x.npy, y: y.npy, transform: [{rescale: 1/255}]}
model: {layers: [{conv2d: {name: c, filters: 3, kernel_size: 3}}, flatten, {dense: {name: d, units: 2}}]}
train: {batch_size: 10, epochs: 1, loss: sparse_categorical_crossentropy, optimizer: sgd}
)");
  const Finished run = trainctl(folder, {"run", "net.yaml", "--ranks", "1"});
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
}

Finished exported(const Folder& folder, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "export");
  return trainctl(folder, arguments);
}

}  // namespace

TEST_CASE("export writes a network, reports its inputs and outputs, and replaces a file only with --force") {
  const Folder folder;
  train(folder);
  const Finished first = exported(folder, {"runs/net", "--format", "onnx"});
  INFO(tail(first.errors));
  REQUIRE(first.code == 0);
  CHECK(contains(first.out, "net.onnx: "));
  CHECK(contains(first.out, "float32, accepts input float32 [batch, 6, 5, 1], returns output [batch, 2]"));
  const std::string bytes = read_file(folder / "net.onnx");
  CHECK(contains(bytes, "c/kernel"));

  const Finished again = exported(folder, {"net.yaml", "--format", "onnx"});
  CHECK(again.code == 2);
  CHECK(contains(again.errors, "net.onnx: this file exists"));
  const Finished forced = exported(folder, {"net.yaml", "--format", "onnx", "--force", "--json", "--preprocess"});
  REQUIRE(forced.code == 0);
  const Json document = Json::parse(forced.out);
  CHECK(document["ok"] == true);
  CHECK(document["inputs"][0] == Json({{"name", "input"}, {"dtype", "uint8"}, {"sample", {6, 5, 1}}}));
  CHECK(document["bytes"] == std::filesystem::file_size(folder / "net.onnx"));
  CHECK(read_file(folder / "net.onnx") != bytes);
}

TEST_CASE("export writes the weights of a checkpoint unchanged or rounded") {
  const Folder folder;
  train(folder);
  for (const char* dtype : {"float32", "bfloat16"}) {
    const Finished run = exported(folder, {"runs/net/checkpoints/last", "--format", "safetensors", "--dtype", dtype,
                                           "-o", std::string(dtype) + ".safetensors"});
    INFO(tail(run.errors));
    REQUIRE(run.code == 0);
  }
  const SafetensorsFile exact(folder / "float32.safetensors"), rounded(folder / "bfloat16.safetensors");
  REQUIRE(exact.header().tensors.size() == 4);
  for (const StoredTensor& tensor : exact.header().tensors) {
    const StoredTensor* other = rounded.header().find(tensor.name);
    REQUIRE(other != nullptr);
    CHECK(other->dtype == DType::bfloat16);
    CHECK(other->shape == tensor.shape);
    const auto count = static_cast<std::size_t>(tensor.shape.count());
    std::vector<float> values(count);
    std::vector<std::uint16_t> bits(count);
    exact.read(tensor, values.data());
    rounded.read(*other, bits.data());
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t wide = std::uint32_t{bits[i]} << 16;
      float value = 0;
      std::memcpy(&value, &wide, sizeof value);
      CHECK(value == Approx(values[i]).epsilon(0x1p-8));
    }
  }
}

TEST_CASE("export writes Keras' files of weights, which model.weights reads back bit for bit") {
  const Folder folder;
  train(folder);
  const Finished run = exported(folder, {"runs/net", "--format", "keras-weights"});
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  REQUIRE(exported(folder, {"runs/net", "--format", "safetensors"}).code == 0);
  const auto keras = open_weights(folder / "net.h5");
  CHECK(keras->origin() == WeightsOrigin::keras);
  const SafetensorsFile expected(folder / "net.safetensors");
  REQUIRE(keras->tensors().size() == expected.header().tensors.size());
  for (std::size_t i = 0; i < keras->tensors().size(); ++i) {
    const StoredTensor* tensor = expected.header().find(keras->tensors()[i].name);
    REQUIRE(tensor != nullptr);
    CHECK(tensor->shape == keras->tensors()[i].shape);
    std::vector<float> values(static_cast<std::size_t>(tensor->shape.count())), wanted = values;
    keras->read(i, values.data());
    expected.read(*tensor, wanted.data());
    CHECK(values == wanted);
  }
}

TEST_CASE("export refuses what it cannot do, and leaves no file") {
  const Folder folder;
  train(folder);
  const auto refuses = [&](const std::vector<std::string>& arguments, int code, const std::string& why) {
    const Finished run = exported(folder, arguments);
    CHECK(run.code == code);
    INFO(run.errors);
    CHECK(contains(run.errors, why));
    CHECK_FALSE(std::filesystem::exists(folder / "net.onnx"));
  };
  refuses({"runs/net"}, 2, "--format");
  refuses({"runs/net", "--format", "tflite"}, 2, "tflite");
  refuses({"runs/nothing", "--format", "onnx"}, 2, "is not a run directory");
  refuses({"runs/net", "--format", "safetensors", "--preprocess"}, 2, "this format cannot hold them");
  refuses({"runs/net", "--format", "keras-weights", "--dtype", "bfloat16"}, 2, "float32");
  refuses({"runs/net", "--format", "onnx", "-o", "missing/net.onnx"}, 6, "missing/net.onnx");
  std::string config = read_file(folder / "runs/net/config.yaml");
  config.replace(config.find("filters: 3"), 10, "filters: 4");
  folder.write("runs/net/config.yaml", config);
  refuses({"runs/net", "--format", "onnx"}, 2, "holds no c/");
}

TEST_CASE("export names the tokens with which documents begin and end, and none of them that the config does without") {
  const Folder folder;
  std::string text;
  for (int i = 0; i < 20; ++i) text += "one line of text\n";
  folder.write("text.txt", text);
  const std::string tokenizer = read_file(TRAINCTL_SOURCE_DIR "/test/golden/tokenizers/gpt2.json");
  folder.write("tokenizer/tokenizer.json", tokenizer);  // with <s>, number 0, and </s>, number 1
  folder.write("tokenizer/tokenizer_config.json", R"({"bos_token": "<s>", "eos_token": "</s>"})");
  folder.write("lm.yaml", R"(
data: {dataset: text, path: text.txt, positions: 8, tokenizer: tokenizer/tokenizer.json, cache_path: cache}
model: {preset: gpt2, with: {vocabulary: 600, positions: 8, layers: 1, heads: 1, head_size: 4, width: 4, mlp: 4}}
train: {batch_size: 2, max_steps: 1, optimizer: adam, loss: {name: sparse_categorical_crossentropy, from_logits: true}}
)");
  struct Row {
    std::vector<std::string> sets;
    Json begin, end;
  };
  // Without a token for the beginning, a text begins after the end of another one.
  const Row rows[] = {{{}, 0, 1},
                      {{"data.begin_token=none"}, 1, 1},
                      {{"data.end_token=none"}, 0, nullptr},
                      {{"data.begin_token=none", "data.end_token=none"}, nullptr, nullptr}};
  int number = 0;
  for (const Row& row : rows) {
    const std::string name = "run" + std::to_string(number++), exports = name + "-exported";
    std::vector<std::string> arguments{"run", "lm.yaml", "--ranks", "1", "--run-dir", name};
    for (const std::string& set : row.sets) arguments.insert(arguments.end(), {"--set", set});
    const Finished trained = trainctl(folder, arguments);
    CAPTURE(row.sets, tail(trained.errors));
    REQUIRE(trained.code == 0);
    const Finished run = exported(folder, {name, "--format", "huggingface", "-o", exports});
    CAPTURE(tail(run.errors));
    REQUIRE(run.code == 0);
    const Json config = Json::parse(read_file(folder / (exports + "/config.json")));
    CHECK(config["bos_token_id"] == row.begin);
    CHECK(config["eos_token_id"] == row.end);
    const Json tokens = Json::parse(read_file(folder / (exports + "/tokenizer_config.json")));
    CHECK(tokens["bos_token"] == "<s>");
    CHECK(tokens["eos_token"] == "</s>");
    CHECK(tokens["model_max_length"] == 8);
  }
}

TEST_CASE("export names the special tokens of a tokenizer without a file about them, and says what bytes are") {
  const Folder folder;
  std::string text;
  for (int i = 0; i < 20; ++i) text += "one line of text\n";
  folder.write("text.txt", text);
  folder.write("tokenizer.json", read_file(TRAINCTL_SOURCE_DIR "/test/golden/tokenizers/bert.json"));
  folder.write("lm.yaml", R"(
data: {dataset: text, path: text.txt, positions: 8, cache_path: cache}
model: {preset: gpt2, with: {vocabulary: 907, positions: 8, layers: 1, heads: 1, head_size: 4, width: 4, mlp: 4}}
train: {batch_size: 2, max_steps: 1, optimizer: adam, loss: {name: sparse_categorical_crossentropy, from_logits: true}}
)");
  const auto export_with = [&](const std::string& tokenizer, const std::string& name) {
    std::vector<std::string> arguments{"run", "lm.yaml", "--ranks", "1", "--run-dir", name};
    if (!tokenizer.empty()) arguments.insert(arguments.end(), {"--set", "data.tokenizer=" + tokenizer});
    const Finished trained = trainctl(folder, arguments);
    CAPTURE(tail(trained.errors));
    REQUIRE(trained.code == 0);
    const Finished run = exported(folder, {name, "--format", "huggingface", "-o", "exported-" + name});
    CAPTURE(tail(run.errors));
    REQUIRE(run.code == 0);
    return run.errors;
  };
  CHECK_FALSE(contains(export_with("tokenizer.json", "words"), "no tokenizer is written"));
  const Json tokens = Json::parse(read_file(folder / "exported-words/tokenizer_config.json"));
  CHECK(tokens["tokenizer_class"] == "PreTrainedTokenizerFast");
  CHECK(tokens["pad_token"] == "[PAD]");
  CHECK(tokens["unk_token"] == "[UNK]");
  CHECK(tokens["cls_token"] == "[CLS]");
  CHECK(tokens["sep_token"] == "[SEP]");
  CHECK_FALSE(tokens.contains("mask_token"));  // the vocabulary has none
  CHECK(tokens["eos_token"] == "[SEP]");       // with which documents end
  CHECK_FALSE(tokens.contains("bos_token"));
  CHECK(tokens["model_max_length"] == 8);
  for (const std::string tokenizer : {"bytes", ""}) {
    const std::string name = "bytes" + tokenizer, written = "exported-" + name;
    const std::string said = export_with(tokenizer, name);
    CHECK(contains(said, "no tokenizer is written: "));
    CHECK(contains(said, "0 to 255 are the bytes of a text in UTF-8, and 256 is the end of a document"));
    CHECK_FALSE(std::filesystem::exists(folder / (written + "/tokenizer.json")));
    CHECK_FALSE(std::filesystem::exists(folder / (written + "/tokenizer_config.json")));
    const Json config = Json::parse(read_file(folder / (written + "/config.json")));
    CHECK(config["eos_token_id"] == (tokenizer.empty() ? Json(nullptr) : Json(256)));
  }
}

TEST_CASE("export describes how a vision transformer's images are resized and scaled, if transformers can do that") {
  const Folder folder;
  std::vector<std::uint8_t> x(6 * 10 * 12 * 2);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::uint8_t>(i * 7919 % 251);
  folder.write("x.npy", npy("|u1", "(6, 10, 12, 2)", raw(x)));
  folder.write("floats.npy", npy("<f4", "(6, 10, 12, 2)", raw(std::vector<float>(x.begin(), x.end()))));
  folder.write("y.npy", npy("<i8", "(6,)", raw(std::vector<std::int64_t>{0, 1, 2, 2, 1, 0})));
  folder.write("vit.yaml", R"(
data: {dataset: npy, x: x.npy, y: y.npy}
model:
  preset: vit_b16
  with: {classes: 3, patch: 4, layers: 1, heads: 2, head_size: 3, width: 6, mlp: 8}
train: {batch_size: 6, max_steps: 1, optimizer: adam, loss: sparse_categorical_crossentropy}
)");
  int number = 0;
  const auto exported_with = [&](const std::string& transform, const std::string& file) {
    const std::string name = "run" + std::to_string(number++);
    const Finished trained = trainctl(folder, {"run", "vit.yaml", "--ranks", "1", "--run-dir", name, "--set",
                                               "data.transform=" + transform, "--set", "data.x=" + file});
    CAPTURE(transform, tail(trained.errors));
    REQUIRE(trained.code == 0);
    const Finished run = exported(folder, {name, "--format", "huggingface", "-o", "made", "--force"});
    CAPTURE(tail(run.errors));
    REQUIRE(run.code == 0);
    const std::string path = folder / "made/preprocessor_config.json";
    CHECK(std::filesystem::exists(path) != contains(run.errors, "no preprocessor_config.json is written: "));
    return std::filesystem::exists(path) ? read_file(path) : run.errors;
  };
  const std::string resize = "{resize: [8, 8]}";
  const auto made =
      exported_with("[" + resize + ", {rescale: 1/255}, {normalize: {mean: [0.3, 0.6], std: [0.2, 0.7]}}]", "x.npy");
  CHECK(Json::parse(made) == Json({{"image_processor_type", "ViTImageProcessor"},
                                   {"do_resize", true},
                                   {"size", {{"height", 8}, {"width", 8}}},
                                   {"resample", 2},
                                   {"do_convert_rgb", false},
                                   {"do_rescale", true},
                                   {"rescale_factor", 1.0 / 255},
                                   {"do_normalize", true},
                                   {"image_mean", {0.3, 0.6}},
                                   {"image_std", {0.2, 0.7}}}));
  // trainctl reads it as the transforms of the run.
  REQUIRE(trainctl(folder, {"import", "made", "-o", "again"}).code == 0);
  CHECK(contains(read_file(folder / "again/made.yaml"),
                 "[{resize: [8, 8]}, {rescale: 1/255}, {normalize: {mean: [0.3, 0.6], std: [0.2, 0.7]}}]"));

  const Json scaled = Json::parse(exported_with("[" + resize + ", {rescale: 1/255}]", "x.npy"));
  CHECK(scaled["rescale_factor"] == 1.0 / 255);
  CHECK(scaled["do_normalize"] == false);
  const Json shifted = Json::parse(exported_with("[" + resize + ", {rescale: {scale: 1/127.5, offset: -1}}]", "x.npy"));
  CHECK(shifted["image_mean"] == Json({0.5, 0.5}));
  CHECK(shifted["image_std"] == Json({0.5, 0.5}));
  CHECK(Json::parse(exported_with("[" + resize + "]", "x.npy"))["do_rescale"] == false);

  CHECK(contains(exported_with("[{resize: 8}, {center_crop: 8}]", "x.npy"),
                 "crops images or resizes their shorter side"));
  CHECK(contains(exported_with("[" + resize + "]", "floats.npy"), "are arrays of values and not images"));
  CHECK(contains(exported_with("[" + resize + ", {rescale: -1}]", "x.npy"), "a number that is not positive"));
}

TEST_CASE("export refuses networks that transformers does not have") {
  const Folder folder;
  train(folder);
  const Finished run = exported(folder, {"runs/net", "--format", "huggingface"});
  CHECK(run.code == 2);
  CHECK(contains(run.errors, "transformers has no network with the layers of this one"));
  CHECK(!std::filesystem::exists(folder / "net-huggingface"));
}

}  // namespace trainctl::test::export_test
