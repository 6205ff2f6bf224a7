// Tests errors while a run starts or trains: one clear message, the right exit code, no half-written files, no hang.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"

namespace trainctl::test::errors_test {
namespace {

namespace fs = std::filesystem;

// An .npy file of version 1.0.
template <class T>
std::string npy(const std::string& type, const std::string& shape, const std::vector<T>& values) {
  std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }";
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string file = std::string("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size() & 255);
  file += static_cast<char>(header.size() >> 8);
  file += header;
  return file.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

// 200 samples of 6 values and 3 classes as arrays; sample 117 has the given label, and one value of sample 131 is the
// given one.
void write_arrays(const Folder& folder, std::int64_t label, float value) {
  std::vector<float> x(200 * 6);
  std::vector<std::int64_t> y(200);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 7919) % 113) / 113.0f - 0.5f;
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = static_cast<std::int64_t>(i % 3);
  y[117] = label;
  x[131 * 6 + 2] = value;
  folder.write("x.npy", npy("<f4", "(200, 6)", x));
  folder.write("y.npy", npy("<i8", "(200,)", y));
}

const std::string arrays = R"(
data: {dataset: npy, x: x.npy, y: y.npy, shape: [6], classes: 3, shuffle: false}
model: {layers: [{dense: {name: hidden, units: 8, activation: relu}}, {dense: {name: out, units: 3}}]}
checkpoint: {every: 2 steps}
)" + train_section("batch_size: 20, epochs: 3, optimizer: {name: sgd, learning_rate: 0.1}");

// Checks the exit code, and that there is one message without output of MPI.
void expect(const Finished& run, int code, const std::vector<std::string>& words) {
  INFO(tail(run.errors));
  CHECK(run.code == code);
  for (const std::string& word : words) {
    CAPTURE(word);
    CHECK(contains(run.errors, word));
  }
  for (const char* noise : {"mpirun", "MPI_ABORT", "internal error", "terminate called"}) {
    CHECK_FALSE(contains(run.errors, noise));
  }
  CHECK(count(run.errors, words.front()) == 1);
}

TEST_CASE("a label out of range that only one rank reads is exit code 3, with the file and the sample") {
  const Folder folder;
  write_arrays(folder, 3, 0.5f);
  const std::string config = folder.write("labels.yaml", arrays);
  for (const char* ranks : {"1", "2", "3"}) {
    expect(trainctl(folder, {"run", config, "--ranks", ranks, "--run-dir", std::string("of-") + ranks}), 3,
           {"117", "y.npy"});
  }
}

TEST_CASE("a NaN in the data is exit code 3, with the file and the sample") {
  const Folder folder;
  write_arrays(folder, 0, std::numeric_limits<float>::quiet_NaN());
  const std::string config = folder.write("nan.yaml", arrays);
  for (const char* ranks : {"1", "3"}) {
    const std::string directory = folder / (std::string("of-") + ranks);
    const Finished run = trainctl(folder, {"run", config, "--ranks", ranks, "--run-dir", directory});
    expect(run, 3, {"x.npy, sample 131: holds NaN", "on_error: skip"});
  }
}

TEST_CASE("a learning rate that is too large is exit code 4") {
  const Folder folder;
  write_arrays(folder, 0, 0.5f);
  const std::string config = folder.write("explodes.yaml", arrays);
  const Finished run = trainctl(folder, {"run", config, "--ranks", "2", "--set", "train.optimizer.learning_rate=1e30"});
  expect(run, 4, {"training diverged at step ", "lower the learning rate"});
}

TEST_CASE("data files that are missing, cut off or of another kind are exit code 3, and the file is named") {
  const Folder folder;
  const std::string config = folder.write("files.yaml", arrays);
  expect(trainctl(folder, {"run", config, "--ranks", "2"}), 3, {".npy: cannot be opened"});
  write_arrays(folder, 0, 0.5f);
  const std::string whole = read_file(folder / "x.npy");
  folder.write("x.npy", whole.substr(0, whole.size() - 100));
  expect(trainctl(folder, {"run", config, "--ranks", "3"}), 3, {"x.npy"});
  folder.write("x.npy", "RIFF" + whole.substr(4));
  expect(trainctl(folder, {"run", config, "--ranks", "1"}), 3, {"x.npy"});
  folder.write("x.npy", whole);
  CHECK(trainctl(folder, {"run", config, "--ranks", "2"}).code == 0);  // earlier failures are no obstacle
}

TEST_CASE("an image that cannot be decoded and an empty class folder are exit code 3") {
  const Folder folder;
  for (int i = 0; i < 6; ++i) folder.write(format("images/cat/{}.png", i), "no image at all");
  fs::create_directories(folder / "images/dog");
  const std::string config = folder.write("images.yaml", R"(
data: {dataset: image_folder, path: images, shape: [8, 8, 3], classes: 2, transform: [{resize: [8, 8]}]}
model: {layers: [flatten, {dense: 2}]}
)" + train_section("batch_size: 2, epochs: 1, optimizer: sgd"));
  expect(trainctl(folder, {"run", config, "--ranks", "2"}), 3, {"dog"});
  folder.write("images/dog/1.jpg", "\xff\xd8\xff and no more");
  expect(trainctl(folder, {"run", config, "--ranks", "2"}), 3, {"images/"});
}

TEST_CASE("run directories that cannot be written or hold other files are refused") {
  const Folder folder;
  write_arrays(folder, 0, 0.5f);
  const std::string config = folder.write("config.yaml", arrays);
  expect(trainctl(folder, {"run", config, "--ranks", "2", "--run-dir", "/proc/nowhere"}), 6, {"/proc/nowhere"});
  folder.write("file", "");
  expect(trainctl(folder, {"run", config, "--ranks", "2", "--run-dir", "file"}), 6, {"file"});
  folder.write("mine/thesis.tex", "");
  expect(trainctl(folder, {"run", config, "--ranks", "2", "--run-dir", "mine"}), 2, {"mine"});
}

TEST_CASE("checkpoints that are missing, damaged or of another model are refused") {
  const Folder folder;
  write_arrays(folder, 0, 0.5f);
  const std::string config = folder.write("config.yaml", arrays);
  REQUIRE(trainctl(folder, {"run", config, "--ranks", "2", "--run-dir", "whole"}).code == 0);
  REQUIRE(events(folder / "whole", "end").back().at("step") == 30);
  const std::string newest = "whole/checkpoints/step-00000030";

  expect(trainctl(folder, {"run", config, "--ranks", "2", "--run-dir", "a", "--resume", "whole/checkpoints/none"}), 3,
         {"whole/checkpoints/none"});
  expect(trainctl(folder, {"run", config, "--ranks", "2", "--run-dir", "b", "--resume", newest, "--set",
                           "model.layers.0.dense.units=9", "--set", "train.epochs=4"}),
         2, {"another model", "hidden/kernel"});

  std::fstream file(folder / (newest + "/weights.safetensors"), std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(-5, std::ios::end);
  const int byte = file.get();
  file.seekp(-5, std::ios::end);
  file.put(static_cast<char>(byte ^ 4));
  file.close();
  expect(trainctl(folder, {"run", config, "--ranks", "2", "--run-dir", "c", "--resume", newest}), 3,
         {"step-00000030", "damaged"});
  CHECK(trainctl(folder, {"inspect", newest}).code == 1);
  // The run is unfinished again, so it resumes from the checkpoint before.
  fs::remove(folder / "whole/metrics.jsonl");
  const Finished rest = trainctl(folder, {"run", config, "--ranks", "2", "--run-dir", "whole"});
  INFO(rest.errors);
  CHECK(rest.code == 0);
  CHECK(contains(rest.errors, "skipped a checkpoint"));
  CHECK(events(folder / "whole", "start").back().at("first_step") == 28);
}

TEST_CASE("more ranks than given slots are refused, more ranks than cores lead to a warning") {
  const Folder folder;
  const std::string config = folder.write(
      "slots.yaml", uneven_data + mlp_model + train_section("batch_size: 20, max_steps: 3, optimizer: {name: sgd}"));
  expect(trainctl(folder, {"run", config, "--ranks", "3", "--hosts", "localhost:2"}), 2, {"name more slots"});
  CHECK_FALSE(fs::exists(folder / "runs"));
  const std::string many = std::to_string(sysconf(_SC_NPROCESSORS_ONLN) + 3);
  if (std::stoi(many) <= 8) expect(trainctl(folder, {"run", config, "--ranks", many}), 0, {"share"});
}

TEST_CASE("a requested GPU that cannot be used is exit code 6, with the reason") {
  const Folder folder;
  const std::string config = folder.write(
      "gpu.yaml", uneven_data + mlp_model + train_section("batch_size: 20, max_steps: 3, optimizer: {name: sgd}"));
  if (fs::exists("/dev/nvidiactl")) return;  // the test is for machines without a GPU
  for (const char* ranks : {"1", "2"}) {
    expect(trainctl(folder, {"run", config, "--ranks", ranks, "--device", "cuda"}), 6, {"no CUDA device can be used"});
  }
}

}  // namespace
}  // namespace trainctl::test::errors_test
