// Shared by the tests of checkpoints: random snapshots, a temporary folder, and files as text.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/exec/interfaces/snapshot.h"
#include "io/checkpoint/store.h"

namespace trainctl::test {

namespace fs = std::filesystem;

// A temporary folder that is removed with the object.
struct TemporaryFolder {
  std::string path;

  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "trainctl-test-XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  std::string operator/(const std::string& name) const { return path + "/" + name; }
};

inline std::string read_text(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

inline void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

// A snapshot of a small network with momentum, with random values that this object owns.
struct RandomSnapshot {
  Snapshot snapshot;
  std::vector<std::unique_ptr<std::vector<float>>> values;

  explicit RandomSnapshot(unsigned seed, std::int64_t step = 7, std::int64_t scale = 1) {
    std::mt19937 random(seed);
    const auto add = [&](std::vector<NamedTensor>& list, const std::string& name, Shape shape) {
      values.push_back(std::make_unique<std::vector<float>>(static_cast<std::size_t>(shape.count())));
      for (float& value : *values.back()) value = std::normal_distribution<float>()(random);
      list.push_back({name, shape, {values.back()->data(), DType::float32, shape.count()}});
    };
    snapshot.step = step;
    snapshot.position = {seed + 0xF000000000000000u, 3, 1234 + seed};
    snapshot.mesh = {2, 1, 1};
    snapshot.metrics = {{"val_accuracy", 0.5 + seed * 1e-3}, {"val_loss", 1.25}};
    snapshot.metadata = {{"kernels", "conv2d 3x3: brgconv"}, {"data", "mnist:60000"}};
    for (auto* list : {&snapshot.weights, &snapshot.state}) {
      const std::string prefix = list == &snapshot.weights ? "" : "momentum/";
      add(*list, prefix + "bn/moving_mean", {5});
      add(*list, prefix + "conv/kernel", {3, 3, 2, 5 * scale});
      add(*list, prefix + "dense/bias", {1});
      add(*list, prefix + "dense/kernel", {45, 10 * scale});
      add(*list, prefix + "scalar", Shape());
    }
  }
};

// Saves a snapshot like a single rank, which has all tensors; returns the checkpoint's path.
inline std::string save(CheckpointStore&& store, const Snapshot& snapshot, bool weights_only = false) {
  std::int64_t bytes = 0;
  for (const NamedTensor& tensor : snapshot.weights) bytes += tensor.view.bytes();
  for (const NamedTensor& tensor : snapshot.state) bytes += weights_only ? 0 : tensor.view.bytes();
  try {
    const SnapshotTarget target = store.begin(snapshot.step, bytes);
    std::vector<std::string> files = {FolderSink().write(target, {SnapshotContent::weights}, snapshot.weights)};
    if (!weights_only) files.push_back(FolderSink().write(target, {SnapshotContent::state}, snapshot.state));
    return store.commit(snapshot, files);
  } catch (...) {
    store.abandon();
    throw;
  }
}
inline std::string save(CheckpointStore& store, const Snapshot& snapshot) { return save(std::move(store), snapshot); }

// Returns the snapshot with a best value that was reached at this step.
inline Snapshot with_best(Snapshot snapshot, std::int64_t step) {
  snapshot.best = {"val_loss", false, 0.1 + 1.0 / static_cast<double>(step), step};
  return snapshot;
}

// Whether two lists have the same names, shapes and bits.
inline bool same(const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].name != b[i].name || a[i].shape != b[i].shape || a[i].view.count != b[i].view.count) return false;
    const auto bytes = [](const View& view) {
      return std::string(view.as<char>(), static_cast<std::size_t>(view.bytes()));
    };
    if (bytes(a[i].view) != bytes(b[i].view)) return false;
  }
  return true;
}

// Returns the text of the Error that `work` throws, and stores its kind in `kind`.
template <class Work>
std::string failure_of(Work work, ErrorKind* kind = nullptr) {
  try {
    work();
  } catch (const Error& failure) {
    if (kind) *kind = failure.kind();
    return failure.what();
  }
  return "nothing was thrown";
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace trainctl::test
