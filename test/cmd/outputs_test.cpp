// Tests that no command overwrites its own input, whether the output has the same path or is a link.
#include <filesystem>

#include "test/catch.h"
#include "test/support/command.h"

namespace trainctl::test::outputs_test {
namespace {

namespace fs = std::filesystem;

constexpr const char* content = "a,b\n0.25,7\n";

// Checks that the command is refused as a wrong command line, and that the file keeps its content.
void check_refused(const Folder& folder, const std::vector<std::string>& arguments, const std::string& file,
                   const std::string& text) {
  const Finished refused = trainctl(folder, arguments);
  INFO(arguments[0] << " " << refused.errors);
  CHECK(refused.code == 2);
  CHECK(contains(refused.errors, "would overwrite"));
  CHECK(contains(refused.errors, "an input of this command"));
  CHECK(read_file(folder / file) == text);
}

}  // namespace

TEST_CASE("no command overwrites its input") {
  const Folder folder;
  folder.write("x.csv", content);
  fs::create_hard_link(folder / "x.csv", folder / "hard.csv");
  fs::create_symlink("x.csv", folder / "soft.csv");
  for (const char* out : {"x.csv", "./x.csv", "hard.csv", "soft.csv"}) {
    check_refused(folder, {"predict", "run", "x.csv", "--out", out}, "x.csv", content);
    check_refused(folder, {"predict", "run", "tokens=x.csv", "--out", out}, "x.csv", content);
  }
  fs::create_directory(folder / "photos");
  check_refused(folder, {"predict", "run", "photos", "--out", "photos/"}, "x.csv", content);
  folder.write("prompts.jsonl", R"({"text": "once"})");
  check_refused(folder, {"predict", "run", "--prompts", "prompts.jsonl", "--out", "prompts.jsonl"}, "prompts.jsonl",
                R"({"text": "once"})");

  folder.write("corpus/book.txt", "to be or not to be");
  for (const char* corpus : {"corpus/book.txt", "corpus"}) {
    check_refused(folder, {"tokenizer", "train", corpus, "--out", "corpus/book.txt", "--force"}, "corpus/book.txt",
                  "to be or not to be");
  }
  folder.write("ids.npy", "not read");
  check_refused(folder, {"tokenizer", "encode", "bytes", "ids.npy", "--out", "ids.npy", "--force"}, "ids.npy",
                "not read");
  check_refused(folder, {"tokenizer", "decode", "x.csv", "ids.npy", "--out", "x.csv", "--force"}, "x.csv", content);
  folder.write("config.yaml", "seed: 3\n");
  check_refused(folder, {"plan", "config.yaml", "--timeline", "config.yaml"}, "config.yaml", "seed: 3\n");
  check_refused(folder, {"report", "config.yaml", "--out", "config.yaml"}, "config.yaml", "seed: 3\n");
  fs::create_hard_link(folder / "x.csv", folder / "x.safetensors");
  check_refused(folder, {"import", "x.csv", "--force"}, "x.csv", content);
}

TEST_CASE("no command overwrites the files of the run that it reads") {
  const Folder folder;
  const std::string config = folder.write("config.yaml", R"(name: small
data: {dataset: synthetic, samples: 16, shape: [5], classes: 3}
model: {layers: [{dense: 3}]}
train: {epochs: 1, batch_size: 8, loss: {name: sparse_categorical_crossentropy, from_logits: true}, optimizer: sgd}
)");
  const Finished run = trainctl(folder, {"run", config, "--ranks", "1"});
  INFO(run.errors);
  REQUIRE(run.code == 0);
  const std::string metrics = read_file(folder / "runs/small/metrics.jsonl");
  check_refused(folder, {"report", "runs/small", "--out", "runs/small/metrics.jsonl"}, "runs/small/metrics.jsonl",
                metrics);
  folder.write("x.npy", "not read");
  check_refused(folder, {"predict", "runs/small", "x.npy", "--out", "runs/small/metrics.jsonl"},
                "runs/small/metrics.jsonl", metrics);
  for (const auto& entry : fs::recursive_directory_iterator(folder / "runs/small/checkpoints")) {
    if (!entry.is_regular_file()) continue;
    const std::string file = fs::relative(entry.path(), folder.path()).string();
    check_refused(folder, {"export", "runs/small", "--format", "safetensors", "--out", file, "--force"}, file,
                  read_file(entry.path().string()));
  }
}

}  // namespace trainctl::test::outputs_test
