// Tests the command import: imported networks have Keras' outputs in a run, files are replaced only with --force, and
// invalid files are refused.
#include <filesystem>
#include <fstream>
#include <random>

#include "core/base/format.h"
#include "io/checkpoint/safetensors.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/files.h"

namespace trainctl::test::import_test {
namespace {

namespace fs = std::filesystem;

const std::string golden = TRAINCTL_SOURCE_DIR "/test/golden/keras/";

// Writes a tensor of golden values as NumPy would; tokens are whole numbers.
void write_array(const Folder& folder, const SafetensorsFile& values, const std::string& name, const std::string& file,
                 bool tokens = false) {
  const StoredTensor& tensor = *values.header().find(name);
  std::vector<float> numbers(static_cast<std::size_t>(tensor.shape.count()));
  values.read(tensor, numbers.data());
  std::string shape;
  for (const std::int64_t size : tensor.shape.sizes()) shape += std::to_string(size) + ", ";
  const std::vector<std::int32_t> whole(numbers.begin(), numbers.end());
  folder.write(file, npy(tokens ? "<i4" : "<f4", "(" + shape + ")", tokens ? raw(whole) : raw(numbers)));
}

double validation_loss(const std::string& run_directory) {
  return events(run_directory, "epoch").back()["validation"]["loss"].get<double>();
}

std::ptrdiff_t files_in(const std::string& folder) { return std::distance(fs::directory_iterator(folder), {}); }

TEST_CASE("a config that includes an imported one has Keras' outputs") {
  struct Case {
    std::string file, freeze;  // `freeze`: layers that would change in training even without a learning rate
    bool tokens;
  };
  const auto [file, freeze, tokens] =
      GENERATE(Case{"cnn.keras", "norm", false}, Case{"sequence.keras", "", true}, Case{"legacy.h5", "norm", false});
  CAPTURE(file);
  const Folder folder;
  const std::string stem = fs::path(file).stem().string();
  const Finished import = trainctl(folder, {"import", golden + file, "-o", "made/networks"});
  CAPTURE(import.errors);
  REQUIRE(import.code == 0);
  CHECK(contains(import.out, format("made/networks/{}.yaml: ", stem)));
  CHECK(contains(import.out, format("made/networks/{}.safetensors: their weights", stem)));

  const SafetensorsFile values(golden + stem + ".safetensors");
  write_array(folder, values, "input0", "x.npy", tokens);
  write_array(folder, values, "output0", "y.npy");
  const std::string config = folder.write("mine.yaml", format(R"(
include: made/networks/{}.yaml
data: {{dataset: npy, x: x.npy, y: y.npy, validation: {{x: x.npy, y: y.npy}}}}
model: {{freeze: [{}]}}
train:
  batch_size: 3
  epochs: 1
  loss: mean_squared_error
  metrics: []
  optimizer: {{name: sgd, learning_rate: 0}}
)",
                                                              stem, freeze));
  const Finished check = trainctl(folder, {"check", config, "--json"});
  INFO(check.out);
  REQUIRE(check.code == 0);
  CHECK(Json::parse(check.out).at("ok") == true);
  const Finished run = trainctl(folder, {"run", config, "--ranks", "1"});
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  CHECK(validation_loss(folder / "runs/mine") < 1e-9);
  // Without the weights the outputs differ.
  const Finished other =
      trainctl(folder, {"run", config, "--ranks", "1", "--set", "name=other", "--set", "model.weights=none"});
  INFO(tail(other.errors));
  REQUIRE(other.code == 0);
  CHECK(validation_loss(folder / "runs/other") > 1e-4);
}

TEST_CASE("layers of an imported network are replaced, and the others keep its weights") {
  const Folder folder;
  REQUIRE(trainctl(folder, {"import", golden + "functional.keras", "-o", "made"}).code == 0);
  const SafetensorsFile values(golden + "functional.safetensors");
  fs::create_directories(folder / "data");
  write_array(folder, values, "input0", "data/image.npy");
  write_array(folder, values, "input1", "data/other.npy");
  write_array(folder, values, "output0", "data/classes.npy");
  write_array(folder, values, "output1", "data/value.npy");
  const std::string config = folder.write("mine.yaml", R"(
data: {dataset: npy, path: data}
model:
  include: made/functional.yaml
  replace:
    gate: {conv2d: {filters: 12, kernel_size: 1, activation: tanh}}
    value: {dense: {units: 2, use_bias: false}}
train: {batch_size: 3, max_steps: 1, loss: {classes: mean_squared_error, value: mean_squared_error},
        optimizer: {name: sgd, learning_rate: 0}}
)");
  const Finished run = trainctl(folder, {"run", config, "--ranks", "1", "--run-dir", "trained"});
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  const SafetensorsFile imported(folder / "made/functional.safetensors");
  const SafetensorsFile trained(folder / "trained/checkpoints/last/weights.safetensors");
  const auto values_of = [](const SafetensorsFile& file, const std::string& name) {
    const StoredTensor& tensor = *file.header().find(name);
    std::vector<float> numbers(static_cast<std::size_t>(tensor.shape.count()));
    file.read(tensor, numbers.data());
    return numbers;
  };
  int kept = 0;
  for (const StoredTensor& tensor : imported.header().tensors) {
    CAPTURE(tensor.name);
    if (tensor.name.find("moving_") != std::string::npos) continue;
    if (tensor.name == "value/bias") {
      CHECK(trained.header().find(tensor.name) == nullptr);
      continue;
    }
    const bool is_new = tensor.name.starts_with("gate/") || tensor.name.starts_with("value/");
    CHECK((values_of(trained, tensor.name) == values_of(imported, tensor.name)) == !is_new);
    kept += is_new ? 0 : 1;
  }
  CHECK(kept >= 8);

  const Finished unknown = trainctl(folder, {"check", folder.write("wrong.yaml", R"(
data: {dataset: npy, path: data}
model:
  include: made/functional.yaml
  replace:
    gates: flatten
train: {batch_size: 3, max_steps: 1, loss: {classes: mean_squared_error, value: mean_squared_error}, optimizer: sgd}
)")});
  CHECK(unknown.code == 2);
  CHECK(contains(unknown.errors, "wrong.yaml:6:5: the included network has no layer 'gates'; did you mean 'gate'?"));
}

TEST_CASE("import replaces files only with --force") {
  const Folder folder;
  const std::vector<std::string> import{"import", golden + "cnn.keras", "-o", "made"};
  REQUIRE(trainctl(folder, import).code == 0);
  const std::string made[] = {"made/cnn.yaml", "made/cnn.safetensors"};
  const std::string config = read_file(folder / made[0]), weights = read_file(folder / made[1]);
  REQUIRE(weights.size() > 1000);
  for (const std::string& kept : made) {
    fs::remove_all(folder / "made");
    folder.write(kept, "mine");
    const Finished refused = trainctl(folder, import);
    CAPTURE(refused.errors);
    CHECK(refused.code == 2);
    CHECK(contains(refused.errors, kept + ": this file exists; choose another path (-o), or replace it (--force)"));
    CHECK(read_file(folder / kept) == "mine");
    CHECK(files_in(folder / "made") == 1);
    std::vector<std::string> with_force = import;
    with_force.push_back("--force");
    const Finished replaced = trainctl(folder, with_force);
    CAPTURE(replaced.errors);
    CHECK(replaced.code == 0);
    CHECK(read_file(folder / made[0]) == config);
    CHECK(read_file(folder / made[1]) == weights);
    CHECK(files_in(folder / "made") == 2);
  }
}

TEST_CASE("import --json prints one document, with the files that were made or the errors") {
  const Folder folder;
  const Finished made = trainctl(folder, {"import", golden + "cnn.keras", "-o", "made", "--json"});
  CAPTURE(made.errors, made.out);
  REQUIRE(made.code == 0);
  const Json json = Json::parse(made.out);
  CHECK(json.at("ok") == true);
  CHECK(json.at("layers") == 29);
  CHECK(fs::exists(folder / json.at("config").get<std::string>()));
  std::int64_t parameters = 0;
  const SafetensorsFile weights(folder / json.at("weights").get<std::string>());
  for (const StoredTensor& tensor : weights.header().tensors) {
    if (tensor.name.find("/moving_") == std::string::npos) parameters += tensor.shape.count();
  }
  CHECK(json.at("parameters") == parameters);
  CHECK(trainctl(folder, {"import", golden + "cnn.keras", "-o", "made", "--force", "--quiet"}).out.empty());

  const Finished unknown = trainctl(folder, {"import", golden + "unknown.keras", "--json"});
  CHECK(unknown.code == 2);
  CHECK(Json::parse(unknown.out).at("ok") == false);
  CHECK(contains(unknown.out, "AdaptiveAveragePooling2D 'adaptive': this layer has no counterpart"));
}

TEST_CASE("import refuses what it cannot read, and leaves nothing") {
  const Folder folder;
  const std::string whole = read_file(golden + "cnn.keras");
  folder.write("cut.keras", whole.substr(0, whole.size() / 2));
  folder.write("text.keras", "no network");
  folder.write("empty.h5", "");
  folder.write("file", "not a folder");
  struct Case {
    std::vector<std::string> arguments;
    int code;
    std::string words;
  };
  const Case cases[] = {
      {{}, 2, "FILE is required"},
      {{"absent.keras"}, 3, "absent.keras"},
      {{"cut.keras"}, 3, "cut.keras"},
      {{"text.keras"}, 3, "text.keras: neither a .keras nor an .h5 file"},
      {{"empty.h5"}, 3, "empty.h5: neither a .keras nor an .h5 file"},
      {{"."}, 3, ""},
      {{TRAINCTL_SOURCE_DIR "/test/golden/pretrained/small.weights.h5"}, 3, "use it as `model.weights`"},
      {{golden + "unknown.keras"}, 2, "AdaptiveAveragePooling2D 'adaptive': this layer has no counterpart"},
      {{golden + "cnn.keras", "--forse"}, 2, "--forse"},
  };
  for (const Case& c : cases) {
    std::vector<std::string> arguments{"import", "-o", "made"};
    arguments.insert(arguments.end(), c.arguments.begin(), c.arguments.end());
    const Finished refused = trainctl(folder, arguments);
    CAPTURE(c.arguments, refused.errors);
    CHECK(refused.code == c.code);
    CHECK(contains(refused.errors, c.words));
    CHECK(refused.out.empty());
  }
  const Finished no_folder = trainctl(folder, {"import", golden + "cnn.keras", "-o", "file/inside"});
  INFO(no_folder.errors);
  CHECK(no_folder.code == 6);
  CHECK(contains(no_folder.errors, "file/inside"));
  CHECK_FALSE(fs::exists(folder / "made"));
}

}  // namespace
TEST_CASE("import writes a config that refers to a Hugging Face folder") {
  const Folder folder;
  fs::create_directories(folder / "models");
  fs::copy(TRAINCTL_SOURCE_DIR "/test/golden/hugging_face/llama", folder / "models/small", fs::copy_options::recursive);
  const Finished import = trainctl(folder, {"import", "models/small/", "-o", "made", "--json"});
  CAPTURE(import.errors);
  REQUIRE(import.code == 0);
  const Json told = Json::parse(import.out);
  CHECK(told["config"] == "made/small.yaml");
  CHECK(told["preset"] == "llama");
  CHECK(told["parameters"] == 1884);
  CHECK(files_in(folder / "made") == 1);
  std::string text;
  for (int i = 0; i < 500; ++i) text += "a b ";
  folder.write("corpus.txt", text);
  const std::string config = folder.write("mine.yaml", R"(
include: made/small.yaml
data: {path: corpus.txt, tokenizer: small.json, positions: 8}
train: {batch_size: 2, max_steps: 1, optimizer: sgd}
)");
  folder.write(
      "small.json",
      R"({"pre_tokenizer": {"type": "Whitespace"}, "model": {"type": "WordLevel", "vocab": {"a": 0, "b": 22}, "unk_token": "b"}})");
  const Finished check = trainctl(folder, {"check", config, "--json"});
  INFO(check.out);
  REQUIRE(check.code == 0);
  CHECK(Json::parse(check.out)["parameters"] == 1884);

  const Finished again = trainctl(folder, {"import", "models/small", "-o", "made"});
  CHECK(again.code == 2);
  CHECK(contains(again.errors, "made/small.yaml"));
  // The head of this network differs from the table of its tokens, so that they cannot be tied.
  Json tied = Json::parse(read_file(folder / "models/small/config.json"));
  tied["tie_word_embeddings"] = true;
  folder.write("models/small/config.json", tied.dump());
  const Finished copied = trainctl(folder, {"import", "models/small", "-o", "made", "--force"});
  CHECK(copied.code == 3);
  CHECK(
      contains(copied.errors, "'lm_head.weight' differs from 'model.embed_tokens.weight', but config.json ties them"));
  folder.write("models/small/config.json", R"({"model_type": "mamba"})");
  const Finished unknown = trainctl(folder, {"import", "models/small", "-o", "made", "--force"});
  CHECK(unknown.code == 2);
  CHECK(
      contains(unknown.errors, "models/small/config.json: no preset of trainctl computes networks of the model_type"));
}

TEST_CASE("an imported network of images predicts without data, with the folder's scaling") {
  const Folder folder;
  fs::create_directories(folder / "models");
  fs::copy(TRAINCTL_SOURCE_DIR "/test/golden/hugging_face/vit", folder / "models/vit", fs::copy_options::recursive);
  const SafetensorsFile values(TRAINCTL_SOURCE_DIR "/test/golden/hugging_face/vit.safetensors");
  write_array(folder, values, "input", "input.npy");
  REQUIRE(trainctl(folder, {"import", "models/vit", "-o", "."}).code == 0);
  const auto first = [&](const std::string& config) {
    const Finished found = trainctl(folder, {"predict", config, "input.npy", "--out", "output.jsonl", "--quiet"});
    CAPTURE(found.errors);
    REQUIRE(found.code == 0);
    std::ifstream file(folder / "output.jsonl");
    std::string line;
    std::getline(file, line);
    std::vector<double> probabilities;
    const Json prediction = Json::parse(line);
    for (const auto& [name, probability] : prediction.at("probabilities").items()) {
      probabilities.push_back(probability.get<double>());
    }
    return probabilities;
  };
  std::vector<float> output(static_cast<std::size_t>(values.header().find("output")->shape.count()));
  values.read(*values.header().find("output"), output.data());
  const std::vector<double> found = first("vit.yaml");
  REQUIRE(found.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(found[i] == Approx(output[i]).margin(1e-5));

  // Images of (x - 0.5) / 0.25 after the scaling by 1/255 are the same images before it.
  const std::string scaling =
      R"({"size": 12, "image_mean": [0.5, 0.5], "image_std": [0.25, 0.25], "do_normalize": true})";
  folder.write("models/vit/preprocessor_config.json", scaling);
  REQUIRE(trainctl(folder, {"import", "models/vit", "-o", ".", "--force"}).code == 0);
  const StoredTensor& tensor = *values.header().find("input");
  std::vector<float> input(static_cast<std::size_t>(tensor.shape.count()));
  values.read(tensor, input.data());
  for (float& value : input) value = (value * 0.25F + 0.5F) * 255;
  folder.write("input.npy", npy("<f4", "(3, 12, 12, 2)", raw(input)));
  const std::vector<double> scaled = first("vit.yaml");
  for (std::size_t i = 0; i < 3; ++i) CHECK(scaled[i] == Approx(output[i]).margin(1e-4));

  folder.write("models/vit/preprocessor_config.json", R"({"image_mean": [0.5], "image_std": [0.25, 0.25]})");
  const Finished refused = trainctl(folder, {"import", "models/vit", "-o", ".", "--force"});
  CHECK(refused.code == 3);
  CHECK(contains(refused.errors, "models/vit/preprocessor_config.json: 'image_mean' has 1 number, but the network's"));
}

TEST_CASE("an imported network of images has the defaults of its image processor, and notes on other steps") {
  const Folder folder;
  fs::create_directories(folder / "models");
  fs::copy(TRAINCTL_SOURCE_DIR "/test/golden/hugging_face/vit", folder / "models/vit", fs::copy_options::recursive);
  const auto import = [&](const std::string& processor) {
    folder.write("models/vit/preprocessor_config.json", processor);
    const Finished made = trainctl(folder, {"import", "models/vit", "-o", ".", "--force"});
    return made.code == 0 ? read_file(folder / "vit.yaml") : made.errors;
  };
  const std::string halves = "{rescale: 1/255}, {normalize: {mean: [0.5, 0.5], std: [0.5, 0.5]}}]";
  for (const char* usual :
       {"{}", R"({"image_processor_type": "ViTImageProcessorFast", "resample": 2, "image_mean": null})",
        R"({"image_mean": 0.5, "image_std": 0.5, "rescale_factor": null, "do_flip_channel_order": false})"}) {
    const std::string config = import(usual);
    CAPTURE(usual, config);
    CHECK(contains(config, halves));
    CHECK_FALSE(contains(config, "preprocessor_config.json"));
  }
  CHECK(contains(import(R"({"image_mean": 0.25, "image_std": [0.125, 0.75]})"),
                 "mean: [0.25, 0.25], std: [0.125, 0.75]"));
  CHECK(contains(import(R"({"do_resize": false})"), "preprocessor_config.json does not resize images; here `resize`"));
  CHECK(contains(import(R"({"resample": 0})"), "resizes by nearest-neighbour interpolation; `resize` is bilinear"));
  CHECK(
      contains(import(R"({"do_flip_channel_order": true})"), "sets `do_flip_channel_order`, which is not translated"));
  const std::string deit = import(R"({"feature_extractor_type": "DeiTFeatureExtractor"})");
  CHECK(contains(deit, halves));
  CHECK(contains(deit, "cuts out the centre of an image: add `center_crop`"));
  CHECK(contains(deit, "resizes by bicubic interpolation"));
  CHECK(contains(import(R"({"image_processor_type": "OtherImageProcessor"})"),
                 "'image_mean' is missing, and the default of 'Other' is not known: add it"));
  CHECK(contains(import(R"({"image_mean": "half"})"), "'image_mean' must be a number or a list of numbers"));
}

TEST_CASE("a config that includes an imported network of images sets other classes as its notes say") {
  const Folder folder;
  fs::create_directories(folder / "models");
  fs::copy(TRAINCTL_SOURCE_DIR "/test/golden/hugging_face/vit", folder / "models/vit", fs::copy_options::recursive);
  REQUIRE(trainctl(folder, {"import", "models/vit", "-o", "."}).code == 0);
  CHECK(contains(
      read_file(folder / "vit.yaml"),
      "`data: {path: images/, classes: N}`, `model: {with: {classes: N}, weights: {skip: [predictions/*]}}`."));
  std::mt19937 random(31);
  std::vector<float> x;
  std::vector<std::int64_t> y;
  for (int i = 0; i < 10 * 12 * 12 * 2; ++i) x.push_back(static_cast<float>(random() % 1000) / 500.0f - 1);
  for (int i = 0; i < 10; ++i) y.push_back(i % 5);
  folder.write("x.npy", npy("<f4", "(10, 12, 12, 2)", raw(x)));
  folder.write("y.npy", npy("<i8", "(10,)", raw(y)));
  const auto check = [&](const std::string& weights) {
    folder.write("mine.yaml", "model: {include: vit.yaml, with: {classes: 5}" + weights +
                                  "}\ndata: {dataset: npy, x: x.npy, y: y.npy, classes: 5}\n"
                                  "train: {loss: sparse_categorical_crossentropy, batch_size: 4, epochs: 1, "
                                  "optimizer: {name: adamw, learning_rate: 2e-5}}\n");
    return trainctl(folder, {"check", "mine.yaml"});
  };
  const Finished good = check(", weights: {skip: [predictions/*]}");
  CAPTURE(good.errors);
  CHECK(good.code == 0);
  CHECK(contains(good.errors, "22 of 24 tensors; skipped: predictions/bias, predictions/kernel"));
  CHECK(contains(check("").errors, "`skip: [predictions/*]` keeps the layer's initial values"));
}

}  // namespace trainctl::test::import_test
