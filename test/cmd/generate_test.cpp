// Tests predict --prompt: a small language model learns a text by heart, and writes it again.
#include <algorithm>
#include <filesystem>

#include "core/base/json.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/files.h"

namespace trainctl::test::generate_test {
namespace {

constexpr const char* sentence = "pack my box with five dozen liquor jugs; ";

// A run in `folder`/run that has learned the sentence, again and again, by heart. Its 24 positions are fewer than the
// tokens of the texts that it writes.
void train(const Folder& folder, const std::string& model, int epochs = 3) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += sentence;
  folder.write("jugs.txt", text);
  folder.write("jugs.yaml",
               "data: {dataset: text, path: jugs.txt, positions: 24, stride: 3}\n" + model +
                   "train: {batch_size: 16, epochs: " + std::to_string(epochs) +
                   ", metrics: [accuracy], optimizer: {name: adam, "
                   "learning_rate: 5e-3}, loss: {name: sparse_categorical_crossentropy, from_logits: true}}\n");
  const Finished run = trainctl(folder, {"run", "jugs.yaml", "--ranks", "1", "--run-dir", "run"});
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
}

Finished predict(const Folder& folder, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"predict", "run"});
  return trainctl(folder, arguments);
}

constexpr const char* gpt =
    "model: {preset: gpt2, with: {vocabulary: 257, positions: 24, layers: 1, heads: 2, head_size: 16, width: 32, mlp: "
    "64, dropout: 0}}\n";
constexpr const char* recurrent_network =
    "model: {layers: [{embedding: {input_dim: 257, output_dim: 16}}, {gru: {units: 48, return_sequences: true, name: "
    "memory}}, {dense: 257}]}\n";

}  // namespace

TEST_CASE("a language model continues a prompt by what it has learned by heart, beyond its positions") {
  const bool recurrent = GENERATE(false, true);
  Folder folder;
  if (recurrent) {
    train(folder, recurrent_network, 40);
  } else {
    train(folder, gpt);
  }
  const std::string twice = std::string(sentence) + sentence;
  const Finished found = predict(folder, {"--prompt", "pack my box w", "--temperature", "0", "--max-tokens", "60"});
  INFO(found.errors);
  REQUIRE(found.code == 0);
  CHECK(found.out == twice.substr(0, 73) + "\n");
  CHECK(found.errors.find("60 new tokens in ") != std::string::npos);
  CHECK((found.errors.find("the layer 'memory' (recurrent) reads all earlier positions") != std::string::npos) ==
        recurrent);
}

TEST_CASE("an imported network is used without training: its weights are those of the folder") {
  Folder folder;
  train(folder, gpt);
  REQUIRE(trainctl(folder, {"export", "run", "--format", "huggingface", "-o", "hub"}).code == 0);
  REQUIRE(trainctl(folder, {"import", "hub", "-o", "imported"}).code == 0);
  std::filesystem::rename(folder / "run", folder / "trained");
  const std::vector<std::string> tokens{"--set", "data.tokenizer=bytes"};  // a folder has no file of this tokenizer
  std::vector<std::string> arguments{"predict", "imported/hub.yaml", "--prompt", "pack my box w", "--temperature",
                                     "0",       "--max-tokens",      "30"};
  arguments.insert(arguments.end(), tokens.begin(), tokens.end());
  const Finished found = trainctl(folder, arguments);
  INFO(found.errors);
  REQUIRE(found.code == 0);
  CHECK(found.out == (std::string(sentence) + sentence).substr(0, 43) + "\n");
  CHECK(contains(found.errors, "imported/hub.yaml has no run with a checkpoint: uses the pretrained weights of"));

  const auto evaluated = [&](std::vector<std::string> of) {
    of.insert(of.begin(), "eval");
    of.insert(of.end(), {"--data", "training", "--ranks", "1", "--json"});
    const Finished run = trainctl(folder, of);
    INFO(run.errors);
    REQUIRE(run.code == 0);
    return Json::parse(run.out).at("loss").get<double>();
  };
  const double loss = evaluated({"imported/hub.yaml", "--set", "data.tokenizer=bytes", "--set",
                                 "data.path=" + (folder / "jugs.txt"), "--set", "data.stride=3"});
  CHECK(loss == Approx(evaluated({"jugs.yaml", "--run", "trained"})).epsilon(1e-4));
  const Finished again = trainctl(folder, {"export", "imported/hub.yaml", "--format", "huggingface", "-o", "copy"});
  INFO(again.errors);
  REQUIRE(again.code == 0);
  CHECK(read_file(folder / "copy/model.safetensors") == read_file(folder / "hub/model.safetensors"));
}

TEST_CASE("a network with layers that the pretrained weights lack must be trained first") {
  Folder folder;
  train(folder, gpt);
  REQUIRE(trainctl(folder, {"export", "run", "--format", "safetensors", "-o", "w.safetensors"}).code == 0);
  folder.write(
      "head.yaml",
      "data: {dataset: text, positions: 24, tokenizer: bytes}\n"
      "model: {preset: gpt2, with: {vocabulary: 257, positions: 24, layers: 2, heads: 2, head_size: 16, width: "
      "32, mlp: 64}, weights: {file: w.safetensors, allow_missing: true}}\n"
      "train: {loss: sparse_categorical_crossentropy}\n");
  const Finished found = trainctl(folder, {"predict", "head.yaml", "--prompt", "pack"});
  CHECK(found.code == 2);
  CHECK(contains(found.errors, "w.safetensors gives no weights to the layers "));
  CHECK(contains(found.errors, "train first"));
  CHECK(contains(trainctl(folder, {"run", "head.yaml"}).errors, "train needs 'optimizer'"));
}

TEST_CASE("check and run warn of a language model that sees the tokens that it predicts") {
  Folder folder;
  std::string text;
  for (int i = 0; i < 20; ++i) text += sentence;
  folder.write("jugs.txt", text);
  const auto errors_of = [&](const std::string& command, const std::string& causal) {
    folder.write("seen.yaml",
                 "data: {dataset: text, path: jugs.txt, positions: 8}\n"
                 "model: {layers: [{embedding: {input_dim: 257, output_dim: 8}}, {multi_head_attention: {num_heads: 1, "
                 "key_dim: 8, use_causal_mask: " +
                     causal +
                     ", name: looks}}, {dense: {units: 257, activation: softmax}}]}\n"
                     "train: {batch_size: 8, max_steps: 1, loss: sparse_categorical_crossentropy, optimizer: adam}\n");
    const Finished end = trainctl(folder, {command, "seen.yaml", "--ranks", "1"});
    CAPTURE(command, tail(end.errors));
    REQUIRE(end.code == 0);
    return end.errors;
  };
  for (const char* command : {"check", "run"}) {
    const std::string warning = errors_of(command, "false");
    CHECK(contains(warning, "the layer 'looks' (attention) may read later positions"));
    CHECK(contains(warning, "use_causal_mask: true"));
    CHECK_FALSE(contains(errors_of(command, "true"), "later positions"));
  }
}

TEST_CASE("prompts of a file are continued alike on any number of ranks") {
  Folder folder;
  train(folder, gpt);
  std::string prompts;
  const std::string source = std::string(sentence) + sentence;
  for (std::size_t i = 0; i < 11; ++i) prompts += source.substr(2 * i, 2 + 4 * i) + "\n";  // some exceed the positions
  folder.write("prompts.txt", prompts);
  const std::vector<std::string> options{"--prompts", "prompts.txt", "--max-tokens", "9", "--seed", "5", "--json"};
  const Finished one = predict(folder, options);
  INFO(one.errors);
  REQUIRE(one.code == 0);
  const Json texts = parse_json(one.out)["texts"];
  REQUIRE(texts.size() == 11);
  for (std::size_t i = 0; i < 11; ++i) {
    CHECK(texts[i]["prompt"] == source.substr(2 * i, 2 + 4 * i));
    CHECK(texts[i]["tokens"] == 9);
    CHECK(texts[i]["end"] == "length");
  }
  std::vector<std::string> on_two = options;
  on_two.insert(on_two.end(), {"--ranks", "2"});
  const Finished two = predict(folder, on_two);
  INFO(two.errors);
  REQUIRE(two.code == 0);
  CHECK(two.out == one.out);
  // An empty line is the beginning of a document, and is left out if no token says so.
  folder.write("gaps.txt", "pack\n\nfive\n");
  std::vector<std::string> gaps{"--prompts", "gaps.txt", "--max-tokens", "2", "--json"};
  CHECK(parse_json(predict(folder, gaps).out)["texts"].size() == 3);
  gaps.insert(gaps.end(), {"--set", "data.end_token=none"});
  const Finished left_out = predict(folder, gaps);
  INFO(left_out.errors);
  REQUIRE(left_out.code == 0);
  CHECK(parse_json(left_out.out)["texts"].size() == 2);
  CHECK(left_out.errors.find("gaps.txt: 1 empty prompt is left out, since the tokenizer has no token with which "
                             "documents begin or end") != std::string::npos);
  folder.write("gaps.txt", "\n\n");
  const Finished refused = predict(folder, gaps);
  CHECK(refused.code == 3);
  CHECK(refused.errors.find("gaps.txt: holds only empty prompts") != std::string::npos);
  // Written as lines, and stopped before a text.
  const Finished written = predict(folder, {"--prompt", "pack my", "--prompt", "five", "--temperature", "0", "--stop",
                                            " with", "--out", "texts.jsonl"});
  INFO(written.errors);
  REQUIRE(written.code == 0);
  const std::string lines = read_whole(folder.path() / "texts.jsonl");
  REQUIRE(std::count(lines.begin(), lines.end(), '\n') == 2);
  const Json first = parse_json(lines.substr(0, lines.find('\n')));
  CHECK(first["text"] == " box");
  CHECK(first["end"] == "stop");
}

TEST_CASE("a network that reads later positions does not continue a text") {
  Folder folder;
  train(folder,
        "model: {layers: [{embedding: {input_dim: 257, output_dim: 8}}, {multi_head_attention: {num_heads: 2, key_dim: "
        "4, name: both}}, {dense: 257}]}\n",
        1);
  const Finished refused = predict(folder, {"--prompt", "pack"});
  CAPTURE(refused.errors);
  CHECK(refused.code == 2);
  CHECK(refused.errors.find("the layer 'both' (attention) may read later positions, so that the network cannot "
                            "continue a text") != std::string::npos);
}

TEST_CASE("wrong uses of --prompt are refused with what to do") {
  Folder folder;
  train(folder, gpt);
  const auto check = [&](const std::vector<std::string>& arguments, const std::string& error, int code = 2) {
    const Finished refused = predict(folder, arguments);
    CAPTURE(refused.errors);
    CHECK(refused.code == code);
    CHECK(refused.errors.find(error) != std::string::npos);
  };
  check({}, "predict needs an input; name files or folders, or give a language model a text: --prompt TEXT");
  check({"x.txt", "--prompt", "a"}, "x.txt and --prompt cannot be combined");
  check({"--prompt", "a", "--out", "x.csv"}, "use either --json, or --out FILE.jsonl");
  check({"--prompt", "a", "--out", "x.jsonl", "--json"}, "use either --json, or --out FILE.jsonl");
  check({"--top-k", "3", "x.txt"}, "the options for texts need a prompt; add --prompt TEXT or --prompts FILE");
  check({"--prompts", "missing.txt"}, "missing.txt", 3);
  check({"--prompt", "a", "--temperatur", "0.5"}, "unknown option '--temperatur'; did you mean '--temperature'?");
  check({"--prompt", "a", "--temperature", "nan"}, "--temperature: must be a number from 0 to 100, not 'nan'");
  check({"--prompt", "a", "--top-p", "nan"}, "--top-p: must be a number from 0 to 1, not 'nan'");
  check({"--prompt", "a", "--top-p", "1.5"}, "--top-p: must be a number from 0 to 1, not '1.5'");
  check({"--prompt", "a", "--seed", "-1"}, "--seed: must be a whole number of at least 0, not '-1'");
  check({"--prompt", "a", "--otu", "x.jsonl"}, "unknown option '--otu'; did you mean '--out'?");
  folder.write("x.txt", "pack\nmy\n");
  check({"x.txt"}, "x.txt is text, and a language model predicts how a text goes on; --prompts x.txt continues each");
  check({"y.txt"}, "y.txt: does not exist", 3);
}

}  // namespace trainctl::test::generate_test
