// Tests trainctl inspect as users run it.
#include <sys/wait.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "core/base/format.h"
#include "core/base/json.h"
#include "io/checkpoint/store.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/snapshots.h"

namespace trainctl::test::inspect_test {
namespace {

struct Result {
  int code = 0;
  std::string output;
};

Result inspect(const std::string& arguments) {
  Result result;
  FILE* pipe = popen((std::string(TRAINCTL_BINARY) + " inspect " + arguments + " 2>&1").c_str(), "r");
  char buffer[4096];
  for (std::size_t read; (read = fread(buffer, 1, sizeof buffer, pipe)) > 0;) result.output.append(buffer, read);
  result.code = WEXITSTATUS(pclose(pipe));
  return result;
}

}  // namespace

TEST_CASE("inspect prints no error if the reader of its output has gone") {
  const TemporaryFolder run;
  CheckpointStore store(run.path, {});
  save(store, with_best(RandomSnapshot(1, 10).snapshot, 10));
  const std::string command = format("(sleep 0.2; {} inspect {} 2> {}; echo $? > {}) | true", TRAINCTL_BINARY, run.path,
                                     run / "errors", run / "code");
  CHECK(std::system(command.c_str()) == 0);
  REQUIRE(comes_true([&] { return !read_file(run / "code").empty(); }));
  CHECK(read_file(run / "code") == "0\n");
  CHECK(read_file(run / "errors").empty());
}

TEST_CASE("inspect shows a checkpoint and verifies it") {
  const TemporaryFolder run;
  CheckpointStore store(run.path, {});
  save(store, with_best(RandomSnapshot(1, 10).snapshot, 10));
  const RandomSnapshot random(2, 20);
  save(store, with_best(random.snapshot, 10));

  const Result text = inspect(run.path);
  CHECK(text.code == 0);
  for (const std::string part :
       {"step        20\n", "epoch 3, sample 1236, seed 17293822569102704642", "2 x 1 x 1", "conv/kernel ", "3x3x2x5",
        "momentum/dense/bias", "step-00000010: whole", "step-00000020: whole"}) {
    INFO(part);
    CHECK(contains(text.output, part));
  }
  CHECK(contains(text.output, weights_sha256(random.snapshot.weights)));
  CHECK(contains(text.output, "val_loss 0.2 at step 10"));
  CHECK_FALSE(contains(text.output, "0x"));

  const Result json = inspect((run / "checkpoints/best") + " --json");
  CHECK(json.code == 0);
  const auto document = nlohmann::json::parse(json.output);
  CHECK(document["ok"] == true);
  const auto& checkpoint = document["checkpoints"].at(0);
  CHECK(checkpoint["step"] == 10);
  CHECK(checkpoint["position"]["offset"] == 1235);
  CHECK(checkpoint["weights_sha256"] == weights_sha256(RandomSnapshot(1, 10).snapshot.weights));
  CHECK(checkpoint["files"][0]["name"] == "weights.safetensors");
  const auto& tensor = checkpoint["files"][0]["tensors"].at(1);
  CHECK(tensor["name"] == "conv/kernel");
  CHECK(tensor["dtype"] == "float32");
  CHECK(tensor["bytes"] == 360);
  CHECK(checkpoint["best"]["step"] == 10);
  // Compares with sums in long double.
  const RandomSnapshot first(1, 10);
  const View& view = first.snapshot.weights[1].view;
  long double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < view.count; ++i) {
    const long double value = view.as<float>()[i];
    sum += value;
    squares += value * value;
  }
  const long double mean = sum / static_cast<long double>(view.count);
  CHECK(tensor["mean"].get<double>() == Approx(static_cast<double>(mean)));
  CHECK(tensor["norm"].get<double>() == Approx(static_cast<double>(std::sqrt(squares))));
  CHECK(tensor["std"].get<double>() ==
        Approx(static_cast<double>(std::sqrt(squares / static_cast<long double>(view.count) - mean * mean))));
}

TEST_CASE("inspect compares the kernels of two checkpoints") {
  const TemporaryFolder a, b, c;
  RandomSnapshot first(5), second(5), third(5);
  first.snapshot.metadata["kernel_choices"] = "conv2d 3x3\tjit:avx2\ndense\tplain\n";
  first.snapshot.metadata["kernel_hash"] = "0123456789abcdef";
  second.snapshot.metadata = first.snapshot.metadata;
  third.snapshot.metadata["kernel_choices"] = "conv2d 3x3\tref:any\ndense\tplain\n";
  third.snapshot.metadata["kernel_hash"] = "fedcba9876543210";
  CheckpointStore in_a(a.path, {}), in_b(b.path, {}), in_c(c.path, {});
  save(in_a, first.snapshot);
  save(in_b, second.snapshot);
  save(in_c, third.snapshot);
  CHECK(contains(inspect(a.path).output, "hash 0123456789abcdef, 2 choices"));
  CHECK(contains(inspect(a.path + " " + b.path).output, "kernels: equal, hash 0123456789abcdef"));
  const std::string text = inspect(a.path + " " + c.path).output;
  CHECK(contains(text, "kernels: hash 0123456789abcdef in A, fedcba9876543210 in B"));
  CHECK(contains(text, "conv2d 3x3: jit:avx2 in A, ref:any in B"));
  CHECK_FALSE(contains(text, "dense: "));
  const auto document = nlohmann::json::parse(inspect(a.path + " " + c.path + " --json").output);
  CHECK(document["a"]["kernels"] == "0123456789abcdef");
  CHECK(document["changed_kernels"].size() == 1);
  CHECK(document["changed_kernels"][0]["b"] == "ref:any");
}

TEST_CASE("inspect refuses a damaged checkpoint, and a folder without one") {
  const TemporaryFolder run;
  CheckpointStore store(run.path, {});
  save(store, RandomSnapshot(1, 10).snapshot);
  const std::string file = save(store, RandomSnapshot(2, 20).snapshot) + "/state.safetensors";
  std::string text = read_text(file);
  text[text.size() - 3] ^= 4;
  write_text(file, text);
  const Result result = inspect(run.path);
  CHECK(result.code == 1);
  CHECK(contains(result.output, file + ": the checkpoint is damaged: tensor 'momentum/scalar' differs from its hash"));
  CHECK(contains(result.output, "step-00000010: whole"));
  const auto document = nlohmann::json::parse(inspect(run.path + " --json").output);
  CHECK(document["ok"] == false);
  CHECK(document["checkpoints"][0]["ok"] == false);
  CHECK(document["checkpoints"][1]["ok"] == true);
  CHECK(inspect(run / "checkpoints/step-00000010").code == 0);
  CHECK(inspect(run / "nowhere").code == 2);
}

TEST_CASE("inspect compares two checkpoints tensor by tensor") {
  const TemporaryFolder a, b, c;
  RandomSnapshot first(5), second(5, 8);
  CheckpointStore in_a(a.path, {}), in_b(b.path, {}), in_c(c.path, {});
  save(in_a, first.snapshot);
  save(in_b, second.snapshot);
  const Result same = inspect(a.path + " " + b.path);
  INFO(same.output);
  CHECK(same.code == 0);
  CHECK(contains(same.output, "all 10 tensors are equal"));
  CHECK(contains(same.output, "(step 7)"));
  CHECK(contains(same.output, "(step 8)"));

  // One element of a weight and all of a state changed, a tensor renamed, another of a new shape.
  const auto tensor = [&](std::vector<NamedTensor>& list, const std::string& name) -> NamedTensor& {
    for (NamedTensor& one : list) {
      if (one.name == name) return one;
    }
    throw std::runtime_error(name);
  };
  float& changed = tensor(second.snapshot.weights, "dense/kernel").view.as<float>()[123];
  const double before = changed;
  changed += 0.5f;
  const View moved = tensor(second.snapshot.state, "momentum/conv/kernel").view;
  for (std::int64_t i = 0; i < moved.count; ++i) moved.as<float>()[i] *= 2;
  tensor(second.snapshot.weights, "bn/moving_mean").name = "bn/moving_other";
  tensor(second.snapshot.weights, "conv/kernel").shape = {9, 2, 5};
  save(in_c, second.snapshot);
  const Result text = inspect(a.path + " " + c.path);
  INFO(text.output);
  CHECK(text.code == 1);
  CHECK(contains(text.output, "1 of 450"));
  CHECK(contains(text.output, "90 of 90"));
  CHECK(contains(text.output, "only in A"));
  CHECK(contains(text.output, "only in B"));
  CHECK(contains(text.output, "9x2x5 in B"));
  CHECK(contains(text.output, "5 of 11 tensors differ"));

  const Result json = inspect(a.path + " " + (c / "checkpoints/last") + " --json");
  CHECK(json.code == 1);
  const auto document = nlohmann::json::parse(json.output);
  CHECK(document["ok"] == false);
  CHECK(document["b"]["step"] == 8);
  for (const auto& one : document["tensors"]) {
    const std::string name = one["name"];
    CAPTURE(name);
    if (name == "dense/kernel") {
      CHECK(one["content"] == "weights");
      CHECK(one["differing"] == 1);
      CHECK(one["elements"] == 450);
      CHECK(one["largest_absolute"].get<double>() == std::abs(double{changed} - before));
    } else if (name == "momentum/conv/kernel") {
      CHECK(one["content"] == "state");
      CHECK(one["differing"] == 90);
      CHECK(one["largest_relative"].get<double>() == 0.5);
    } else if (name == "bn/moving_mean") {
      CHECK(one["only_in"] == "a");
    } else if (name == "bn/moving_other") {
      CHECK(one["only_in"] == "b");
    } else if (name == "conv/kernel") {
      CHECK(one["other_shape"] == std::vector<int>{9, 2, 5});
    } else {
      CHECK(one["equal"] == true);
    }
  }
  CHECK(inspect(a.path + " " + (a / "nothing")).code == 2);
}

}  // namespace trainctl::test::inspect_test
