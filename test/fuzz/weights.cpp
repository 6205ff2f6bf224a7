// Reads checkpoints and files of weights.
#include <string>
#include <vector>

#include "core/base/hash.h"
#include "io/checkpoint/manifest.h"
#include "io/checkpoint/safetensors.h"
#include "io/hugging_face/folder.h"
#include "io/hugging_face/network.h"
#include "io/weights/hdf5_file.h"
#include "test/fuzz/memory.h"
#include "test/fuzz/targets.h"
#include "test/support/manifests.h"

namespace trainctl::fuzz {
namespace {

constexpr std::int64_t max_values = 1'000'000;

// A safetensors file with one float32 of this name.
std::string small_safetensors(const std::string& name) {
  std::string header = R"({")" + name + R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  std::string length(8, '\0');
  length[0] = static_cast<char>(header.size());
  return length + header + std::string(4, '\0');
}

}  // namespace

void fuzz_safetensors(std::string_view bytes) {
  const SafetensorsFile file(file_of(bytes, "x.safetensors"));
  std::vector<char> all(static_cast<std::size_t>(file.data_bytes()));
  file.read_all(all.data());
  for (const StoredTensor& tensor : file.header().tensors) {
    expect(tensor.bytes() <= file.data_bytes(), "a tensor is larger than its file");
    expect(tensor.bytes() == tensor.shape.count() * size_of(tensor.dtype), "a tensor has another size than its shape");
    file.read(tensor, all.data());
  }
}

// The bytes are the manifest without its hash, which a fuzzer cannot guess.
void fuzz_manifest(std::string_view bytes) {
  const std::string body(bytes), hash = sha256(body.data(), body.size());
  const Manifest manifest = parse_manifest(body + ",\n  \"manifest_sha256\": \"" + hash + "\"\n}\n", "manifest.json");
  const std::string text = test::text_of(manifest);
  expect(test::text_of(parse_manifest(text, "again")) == text, "a manifest is not read as it is written");
  for (const SnapshotContent content : {SnapshotContent::weights, SnapshotContent::state}) manifest.files_of(content);
}

void fuzz_hdf5(std::string_view bytes) {
  const Hdf5File file(in_memory(bytes), "x.h5");
  file.text_list("", "weight_names");
  file.text_attribute("", "layer_names");
  for (const Hdf5File::DataSet& set : file.data_sets()) {
    std::int64_t count = 1;
    for (const std::int64_t size : set.shape.sizes()) {
      if (__builtin_mul_overflow(count, size, &count)) count = max_values + 1;
    }
    if (count > max_values) continue;
    std::vector<float> values(static_cast<std::size_t>(count));
    file.read(set, values.data());
  }
}

void fuzz_hugging_face_config(std::string_view bytes) {
  file_of(bytes, "config.json");
  read_hugging_face_config(fuzz_folder());
}

void fuzz_hugging_face_index(std::string_view bytes) {
  static const std::string shards =
      file_of(small_safetensors("a"), "1.safetensors") + file_of(small_safetensors("b"), "2.safetensors");
  file_of(bytes, "model.safetensors.index.json");
  const HuggingFaceFolder folder(fuzz_folder());
  float value = 0;
  for (const std::string& name : folder.names()) folder.read(name, &value);
}

}  // namespace trainctl::fuzz
