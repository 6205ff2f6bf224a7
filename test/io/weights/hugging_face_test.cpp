// Tests Hugging Face folders as weights: networks of all families have transformers' logits, and wrong folders are
// refused. test/golden/hugging_face.py made the golden folders.
#include <filesystem>
#include <fstream>

#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/graph/ops/elementwise/dropout.h"
#include "io/hugging_face/description.h"
#include "io/hugging_face/folder.h"
#include "io/hugging_face/writer.h"
#include "io/weights/weights_file.h"
#include "test/catch.h"
#include "test/io/weights/support.h"
#include "test/support/mutation.h"

namespace trainctl::test::hugging_face_test {
namespace {

namespace fs = std::filesystem;

const std::string folders = TRAINCTL_SOURCE_DIR "/test/golden/hugging_face/";

// A copy of a golden folder, which a test changes.
struct Copy {
  TemporaryFolder folder;
  std::string path;

  explicit Copy(const std::string& name) : path(folder / name) { fs::copy(folders + name, path); }
  std::string file(const std::string& name) const { return path + "/" + name; }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(file(name), std::ios::binary) << text;
  }
  Json config() const { return parse_json(read_file(file("config.json"), 1'000'000)); }
  void set(const std::string& key, const Json& value) const {
    Json json = config();
    json[key] = value;
    write("config.json", json_text(json));
  }
};

// The section `model` with the preset for a folder.
std::string model_yaml(const std::string& folder, const std::string& further = "") {
  const HuggingFaceNetwork network = read_hugging_face_config(folder);
  const std::string until = network.until.empty() ? "" : ", until: " + network.until;
  return format("{{preset: {}, with: {}{}, weights: {{file: \"{}\"{}}}}}\n", network.preset, flow_text(network.with),
                until, folder, further);
}

// The shape of a sample in the golden files of a folder.
Shape sample_of(const std::string& name) {
  return Arrays(folders + name + ".safetensors").shape("input").without_front();
}

// The input of the network of a golden folder.
ModelInput input_of(const std::string& name) {
  ModelInput input{"", sample_of(name), {}};
  if (input.sample.rank() == 1) input.format.dtype = DType::int32;
  return input;
}

LoadedWeights load_folder(const std::string& folder, const std::string& further = "",
                          const std::string& name = "gpt2") {
  return load(model_yaml(folder, further), sample_of(name));
}

std::string error_of(const std::string& folder, ErrorKind expected) {
  ErrorKind kind{};
  const std::string text = failure_of([&] { load_folder(folder); }, &kind);
  CAPTURE(text);
  CHECK(kind == expected);
  CHECK(text.find('\n') == std::string::npos);
  return text;
}

// How far the outputs of a folder's network are from the golden values `name`.
double difference(const std::string& folder, const std::string& name) {
  const Arrays values(folders + name + ".safetensors");
  const LoadedWeights weights = load_folder(folder, "", name);
  return relative_difference(predict(model_yaml(folder), weights, values.shape("input"), values.values("input")),
                             values.values("output"));
}

}  // namespace

TEST_CASE("networks of Hugging Face folders have the outputs of transformers") {
  const std::string name = GENERATE("gpt2", "llama", "qwen3", "mistral", "vit", "bert");
  CAPTURE(name);
  CHECK(difference(folders + name, name) < 1e-5);
}

TEST_CASE("exported folders hold the same tensors, whole or in shards") {
  const std::string name = GENERATE("gpt2", "llama", "qwen3", "mistral", "vit", "bert");
  const std::int64_t shard = GENERATE(std::int64_t{1} << 30, std::int64_t{2000});
  CAPTURE(name, shard);
  const PretrainedNetwork network(model_yaml(folders + name), sample_of(name));
  const LoadedWeights weights = network.load();
  const HuggingFaceDescription described = describe_for_hugging_face(network.model, {input_of(name)});
  CHECK(described.network.model_type == name);
  const TemporaryFolder folder;
  const std::string path = folder / "written";
  fs::create_directory(path);
  std::ofstream(path + "/model-00001-of-00009.safetensors") << "of another network";
  write_hugging_face_weights(path, described.network.tensors, weights.snapshot.weights, DType::float32, shard);
  write_file(path + "/config.json", json_text(*described.config));
  CHECK(fs::exists(path + "/model.safetensors") == (shard > 10'000));
  CHECK(fs::exists(path + "/model.safetensors.index.json") == (shard < 10'000));
  CHECK(!fs::exists(path + "/model-00001-of-00009.safetensors"));
  const HuggingFaceFolder original(folders + name), written(path);
  REQUIRE(written.names() == original.names());
  for (const std::string& tensor : written.names()) {
    REQUIRE(written.find(tensor)->shape == original.find(tensor)->shape);
    std::vector<float> found(static_cast<std::size_t>(written.find(tensor)->shape.count())), expected(found.size());
    written.read(tensor, found.data());
    original.read(tensor, expected.data());
    CHECK(found == expected);
  }
  CHECK(difference(path, name) < 1e-5);
}

TEST_CASE("a network that differs from the preset is not exported under its name") {
  const auto failure = [&](const std::string& yaml) {
    Reader reader;
    const ModelOptions model = testing::read_model(yaml, reader);
    reader.throw_if_failed();
    return failure_of([&] { describe_for_hugging_face(model, {input_of("gpt2")}); });
  };
  const std::string sizes = "vocabulary: 23, layers: 1, width: 12, heads: 2, key_heads: 1, head_size: 6, mlp: 8";
  CHECK(failure("{preset: llama, with: {" + sizes + "}}") == "nothing was thrown");
  CHECK(contains(failure("{preset: llama, with: {" + sizes + ", rotary: {rotary_dim: 4}}}"),
                 "'layers/0/attention/self_attn' computes rotary (head_size=6 width=4"));
  CHECK(contains(failure("{preset: llama, with: {" + sizes + ", query_key_norm: 1e-3}}"),
                 "'layers/0/attention/self_attn' computes layer_norm"));
  CHECK(contains(failure("layers: [{embedding: {input_dim: 23, output_dim: 4}}, {dense: {units: 23}}]"),
                 "transformers has no network with the layers of this one"));
}

TEST_CASE("language models that keep documents apart are exported, since a single text is one document") {
  const std::string preset = GENERATE("gpt2", "llama");
  const std::string sizes = "vocabulary: 23, layers: 1, width: 12, heads: 2, head_size: 6, mlp: 8" +
                            std::string(preset == "llama" ? ", key_heads: 1" : ", positions: 11");
  Reader reader;
  const ModelOptions model = testing::read_model(
      format("{{inputs: [documents, words], preset: {}, with: {{{}, tokens: words, documents: documents}}}}", preset,
             sizes),
      reader);
  reader.throw_if_failed();
  ModelInput documents = input_of("gpt2"), words = documents;
  documents.name = "documents";
  words.name = "words";
  const HuggingFaceDescription described = describe_for_hugging_face(model, {documents, words});
  CHECK(described.network.model_type == preset);
  CHECK((*described.config)["vocab_size"] == 23);
}

TEST_CASE("tensors that are missing, surplus or of another shape are named") {
  const Copy copy("gpt2");
  const std::string original = read_file(copy.file("model.safetensors"), 1'000'000);
  const auto renamed = [&](const std::string& from, const std::string& to) {
    std::string text = original;
    text.replace(text.find(from), from.size(), to);
    copy.write("model.safetensors", text);
  };
  renamed("transformer.h.1.attn.c_attn.bias", "transformer.h.1.attn.c_attn.bios");
  ErrorKind kind{};
  const std::string text = failure_of([&] { load_folder(copy.path); }, &kind);
  CAPTURE(text);
  CHECK(kind == ErrorKind::config);
  CHECK(contains(text,
                 "'h/1/attention/attn/query/bias' is missing (by Hugging Face's names: "
                 "'transformer.h.1.attn.c_attn.bias')"));
  CHECK(contains(text, "no tensor of the network uses 'transformer.h.1.attn.c_attn.bios' (36)"));
  const std::string skip = ", skip: [\"*.bios\"], allow_missing: true";
  CHECK(load_folder(copy.path, skip).snapshot.weights.size() == 36);

  copy.write("model.safetensors", original);
  copy.set("n_inner", 24);
  CHECK(contains(error_of(copy.path, ErrorKind::data),
                 "the tensor 'transformer.h.0.mlp.c_fc.weight' is 12x20 float32, but by config.json it is 12x24"));
  // The folder is whole, and the user's network is another one.
  const PretrainedNetwork other(
      format("{{preset: gpt2, with: {{vocabulary: 23, positions: 11, layers: 1, heads: 3, head_size: 4, width: 12, "
             "mlp: 20}}, weights: \"{}\"}}",
             folders + "gpt2"),
      {11});
  CHECK(contains(failure_of([&] { other.load(); }),
                 "no tensor of the network uses 'transformer.h.1.attn.c_attn.weight[columns 12 to 23]' (12x12)"));
}

TEST_CASE("a copy of tied weights must equal them, and buffers are no weights") {
  const Copy copy("qwen3");
  const HuggingFaceFolder folder(copy.path);
  std::vector<std::vector<float>> memory;
  std::vector<NamedTensor> tensors;
  const auto add = [&](const std::string& name, const Shape& shape) -> std::vector<float>& {
    memory.emplace_back(static_cast<std::size_t>(shape.count()), 0.5f);
    tensors.push_back({name, shape, {memory.back().data(), DType::float32, shape.count()}});
    return memory.back();
  };
  memory.reserve(100);
  for (const std::string& name : folder.names()) folder.read(name, add(name, folder.find(name)->shape).data());
  add("model.layers.0.self_attn.rotary_emb.inv_freq", {2});
  const std::string table = "model.embed_tokens.weight";
  std::vector<float>& head = add("lm_head.weight", folder.find(table)->shape);
  folder.read(table, head.data());
  const auto write = [&] {
    write_file(copy.file("model.safetensors"), 0, [&](OutputFile& file) { write_safetensors(file, tensors); });
  };
  write();
  CHECK(difference(copy.path, "qwen3") < 1e-5);
  const PretrainedNetwork network(model_yaml(copy.path), sample_of("qwen3"));
  const auto check_import = [&] { check_weights(*network.model.weights, network.graph, WeightsUse::import); };
  CHECK_NOTHROW(check_import());
  head[7] += 1;
  write();
  CHECK(contains(failure_of(check_import), copy.path + ": 'lm_head.weight' differs from 'model.embed_tokens.weight'"));
  CHECK(contains(error_of(copy.path, ErrorKind::data),
                 "'lm_head.weight' differs from 'model.embed_tokens.weight', but config.json ties them"));
}

TEST_CASE("damaged Hugging Face folders are refused by one error with the file and a remedy") {
  const Copy copy("qwen3");
  const std::string index = read_file(copy.file("model.safetensors.index.json"), 1'000'000);
  const std::string shard = "model-00002-of-00004.safetensors";
  const auto index_with = [&](const std::string& by) {
    std::string text = index;
    text.replace(text.find(shard), shard.size(), by);
    copy.write("model.safetensors.index.json", text);
    return error_of(copy.path, ErrorKind::data);
  };
  REQUIRE(index.find(shard) != std::string::npos);
  for (const std::string& name : {"../" + shard, "/tmp/" + shard, std::string(".."), std::string("a/b.safetensors"),
                                  std::string(".hidden.safetensors"), std::string("model.bin"), std::string()}) {
    CHECK(contains(index_with(name), "which is not the name of a .safetensors file in this folder"));
  }
  CHECK(contains(index_with("other.safetensors"), "the shard 'other.safetensors' is missing in this folder; copy"));
  CHECK(contains(index_with("model-00001-of-00004.safetensors"), "does not hold the tensor '"));
  copy.write("model.safetensors.index.json", "{\"weight_map\": [1]}");
  CHECK(contains(error_of(copy.path, ErrorKind::data), "has no 'weight_map'"));
  copy.write("model.safetensors.index.json", index.substr(0, index.size() / 2));
  CHECK(contains(error_of(copy.path, ErrorKind::data), "model.safetensors.index.json:"));
  CHECK(contains(error_of(copy.path, ErrorKind::data), "is not JSON: the text ends too early"));
  copy.write("model.safetensors.index.json", index);

  const std::string bytes = read_file(copy.file(shard), 1'000'000);
  copy.write(shard, bytes.substr(0, bytes.size() - 8));
  CHECK(contains(error_of(copy.path, ErrorKind::data), shard + ": not a valid safetensors file"));
  fs::remove(copy.file(shard));
  CHECK(contains(error_of(copy.path, ErrorKind::data), format("the shard '{}' is missing", shard)));
  fs::remove(copy.file("model.safetensors.index.json"));
  CHECK(contains(error_of(copy.path, ErrorKind::data), "holds no weights: neither model.safetensors nor"));
  copy.write("pytorch_model.bin", "pickle");
  CHECK(contains(error_of(copy.path, ErrorKind::data), "pytorch_model.bin, whose format can run code"));

  copy.write("config.json", "not JSON");
  CHECK(contains(error_of(copy.path, ErrorKind::data), "config.json:1:2: is not JSON: the character "));
  copy.write("config.json", std::string(1000, '[') + std::string(1000, ']'));
  CHECK(contains(error_of(copy.path, ErrorKind::data),
                 "config.json: holds JSON that cannot be read: it has more than 100 levels"));
  copy.write("config.json", "[1]");
  CHECK(contains(error_of(copy.path, ErrorKind::data), "config.json: must be a JSON object, but is a list"));
  fs::remove(copy.file("config.json"));
  CHECK(contains(error_of(copy.path, ErrorKind::data), "config.json"));
}

TEST_CASE("older names of BERT's tensors are known, and other heads are left out only on request") {
  const Copy copy("bert");
  const std::string original = read_file(copy.file("model.safetensors"), 1'000'000);
  std::string text = original;
  for (const auto& [now, before] :
       {std::pair{"LayerNorm.weight\"", "LayerNorm.gamma\" "}, {"LayerNorm.bias\"", "LayerNorm.beta\""}}) {
    for (std::size_t at = 0; (at = text.find(now)) != std::string::npos;) text.replace(at, std::strlen(now), before);
  }
  CHECK(text.size() == original.size());
  copy.write("model.safetensors", text);
  CHECK(difference(copy.path, "bert") < 1e-5);
  copy.set("architectures", {"BertForPreTraining"});
  CHECK(contains(failure_of([&] { load_folder(copy.path); }), "no tensor of the network uses 'classifier.bias' (3)"));
  CHECK(load_folder(copy.path, ", skip: [\"classifier.*\"]").snapshot.weights.size() == 23);
}

TEST_CASE("keys of config.json that the preset cannot express are refused by name") {
  const auto error_with = [](const std::string& name, const std::string& key, const Json& value) {
    const Copy copy(name);
    copy.set(key, value);
    return error_of(copy.path, ErrorKind::config);
  };
  CHECK(
      contains(error_with("gpt2", "model_type", "mamba"), "networks of the model_type 'mamba'; there are presets for"));
  CHECK(contains(error_with("gpt2", "model_type", nullptr), "it has no 'model_type'"));
  CHECK(contains(error_with("gpt2", "activation_function", "relu"), "'activation_function' is \"relu\", which"));
  CHECK(contains(error_with("gpt2", "scale_attn_by_inverse_layer_idx", true), "'scale_attn_by_inverse_layer_idx'"));
  CHECK(contains(error_with("gpt2", "attn_pdrop", 0.25), "'attn_pdrop' differs from 'resid_pdrop' (0)"));
  CHECK(contains(error_with("gpt2", "n_layer", "two"), "'n_layer' must be a whole number from 1 to 1000, not"));
  CHECK(contains(error_with("llama", "num_hidden_layers", 2'000'000'000), "from 1 to 1000, not 2000000000"));
  CHECK(contains(error_with("llama", "vocab_size", -1), "'vocab_size' must be a whole number from 1 to 2147483647"));
  CHECK(contains(error_with("gpt2", "n_head", 5), "'n_head' 5 does not divide 'n_embd' 12"));
  CHECK(contains(error_with("gpt2", "alibi", true), "'alibi' is a key that trainctl does not know"));
  CHECK(
      contains(error_with("bert", "architectures", {"BertForTokenClassification"}), "'architectures' is BertForToken"));
  CHECK(contains(error_with("bert", "attention_probs_dropout_prob", 0.5), "'attention_probs_dropout_prob' differs"));
  CHECK(contains(error_with("bert", "pad_token_id", 3), "'pad_token_id' is 3"));
  CHECK(contains(error_with("vit", "patch_size", 5), "'patch_size' 5 does not divide 'image_size' 12"));
  CHECK(contains(error_with("llama", "attention_bias", true), "'attention_bias' is true"));
  CHECK(contains(error_with("llama", "quantization_config", {{"bits", 4}}), "'quantization_config' is a key"));
  CHECK(contains(error_with("llama", "hidden_size", nullptr), "'hidden_size' is missing"));
  CHECK(contains(error_with("llama", "rope_parameters", {{"rope_type", "yarn"}, {"factor", 4}}), "by the rule 'yarn'"));
  CHECK(
      contains(error_with("llama", "rope_parameters", {{"rope_theta", 10}, {"beta", 4}}), "'rope_parameters.beta' is"));
  CHECK(contains(error_with("llama", "partial_rotary_factor", 0.5), "'partial_rotary_factor' is 0.5"));
  const Copy window("qwen3");
  window.set("use_sliding_window", true);
  window.set("sliding_window", 4);
  window.set("layer_types", {"full_attention", "sliding_attention"});
  CHECK(contains(error_of(window.path, ErrorKind::config),
                 "'layer_types' does not have the same kind of attention for every layer"));
}

TEST_CASE("null in config.json is what transformers takes it for, or is refused by name") {
  const auto with_null = [](const std::string& name, const std::string& key) -> std::string {
    const Copy copy(name);
    copy.set(key, nullptr);
    try {
      read_hugging_face_config(copy.path);
      return "";
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::config);
      return error.what();
    }
  };
  for (const auto& [name, key] : {std::pair{"llama", "rms_norm_eps"},
                                  {"llama", "max_position_embeddings"},
                                  {"llama", "attention_dropout"},
                                  {"llama", "hidden_act"},
                                  {"gpt2", "layer_norm_epsilon"},
                                  {"gpt2", "n_embd"},
                                  {"gpt2", "scale_attn_weights"},
                                  {"gpt2", "activation_function"},
                                  {"bert", "position_embedding_type"},
                                  {"bert", "hidden_dropout_prob"},
                                  {"vit", "qkv_bias"},
                                  {"vit", "hidden_dropout_prob"}}) {
    CAPTURE(name, key);
    const std::string text = with_null(name, key);
    CHECK(contains(text, format("config.json: '{}' ", key)));
    CHECK(contains(text, "null"));
  }
  for (const auto& [name, key] : {std::pair{"llama", "num_key_value_heads"},
                                  {"llama", "attention_bias"},
                                  {"llama", "rope_scaling"},
                                  {"mistral", "sliding_window"},
                                  {"gpt2", "n_inner"},
                                  {"bert", "classifier_dropout"},
                                  {"bert", "pruned_heads"},
                                  {"bert", "is_decoder"},
                                  {"vit", "torch_dtype"}}) {
    CAPTURE(name, key);
    CHECK(with_null(name, key).empty());
  }
}

TEST_CASE("numbers of config.json with which no network computes are refused by name") {
  const auto error_with = [](const std::string& name, const std::string& key, const Json& value) {
    const Copy copy(name);
    copy.set(key, value);
    return error_of(copy.path, ErrorKind::config);
  };
  CHECK(contains(error_with("llama", "rms_norm_eps", -1),
                 "config.json: 'rms_norm_eps' must be a number above 0, not -1"));
  CHECK(contains(error_with("gpt2", "layer_norm_epsilon", 0), "'layer_norm_epsilon' must be a number above 0, not 0"));
  CHECK(contains(error_with("vit", "hidden_dropout_prob", 1), "'hidden_dropout_prob' must be a number from 0 that is"));
  CHECK(contains(error_with("llama", "dtype", "int8"), "'dtype' is \"int8\", which the preset llama cannot compute"));
  CHECK(contains(error_with("gpt2", "torch_dtype", "int4"), "'torch_dtype' is \"int4\""));
}

TEST_CASE("rates of dropout are read and written") {
  for (const auto& [name, key] : {std::pair{"llama", "attention_dropout"},
                                  {"qwen3", "attention_dropout"},
                                  {"vit", "hidden_dropout_prob"},
                                  {"vit", "attention_probs_dropout_prob"}}) {
    CAPTURE(name);
    const Copy copy(name);
    copy.set(key, 0.25);
    CHECK(difference(copy.path, name) < 1e-5);
    const PretrainedNetwork network(model_yaml(copy.path), sample_of(name));
    CHECK((*describe_for_hugging_face(network.model, {input_of(name)}).config)[key] == 0.25);
  }
}

TEST_CASE("a vision transformer drops values in the places where transformers does") {
  const Copy copy("vit");
  copy.set("hidden_dropout_prob", 0.25);
  const PretrainedNetwork network(model_yaml(copy.path), sample_of("vit"));
  BuildOptions options;
  options.inputs = {input_of("vit")};
  options.training = true;
  Reader reader;
  const BuiltModel built = build_model(network.model, options, reader);
  reader.throw_if_failed();
  std::vector<std::string> places;
  for (const Op& op : built.graph.ops) {
    const auto* dropout = op.get_if<Dropout>();
    if (dropout == nullptr) continue;
    places.push_back(op.name);
    CHECK(dropout->rate == 0.25f);
  }
  // After the embeddings, after attention and after the dense network of a block, but not inside the network.
  CHECK(places == std::vector<std::string>{"drop", "encoder/0/attention/drop", "encoder/0/mlp/drop"});
}

TEST_CASE("config.json of earlier versions of transformers are read alike") {
  const Copy copy("llama");
  Json config = copy.config(), rope = config["rope_parameters"];
  config.erase("rope_parameters");
  config["rope_theta"] = rope["rope_theta"];
  rope.erase("rope_theta");
  config["rope_scaling"] = rope;
  config["torch_dtype"] = "bfloat16";
  config["pretraining_tp"] = 1;
  copy.write("config.json", json_text(config));
  CHECK(difference(copy.path, "llama") < 1e-5);
  CHECK(flow_text(read_hugging_face_config(copy.path).with) ==
        flow_text(read_hugging_face_config(folders + "llama").with));
}

TEST_CASE("mutated config.json and index: each is read, or refused by errors of the folder") {
  const Copy copy("qwen3");
  std::mt19937 random(46);
  int refused = 0;
  for (const std::string& name : {std::string("config.json"), std::string("model.safetensors.index.json")}) {
    const std::string original = read_file(copy.file(name), 1'000'000);
    for (int i = 0; i < mutations(); ++i) {
      CAPTURE(name, i);
      copy.write(name, mutated(original, random));
      try {
        open_weights(copy.path);
      } catch (const Error& error) {
        ++refused;
        CHECK((error.kind() == ErrorKind::data || error.kind() == ErrorKind::config));
        CHECK(contains(error.what(), copy.path));
      }
    }
    copy.write(name, original);
  }
  CHECK(refused > mutations() / 4);
}

}  // namespace trainctl::test::hugging_face_test
