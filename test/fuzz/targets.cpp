// The table of targets, and what they share: a folder for files, and the check of exceptions.
#include "test/fuzz/targets.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "core/base/format.h"

namespace trainctl::fuzz {
namespace {

// A folder that is removed with its files. /dev/shm is memory.
struct Folder {
  std::string path;

  Folder() {
    const std::string parent =
        access("/dev/shm", W_OK) == 0 ? "/dev/shm" : std::filesystem::temp_directory_path().string();
    path = format("{}/trainctl-fuzz-{}", parent, getpid());
    std::filesystem::create_directories(path);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

}  // namespace

const std::vector<Target>& targets() {
  constexpr ErrorKind config = ErrorKind::config, data = ErrorKind::data, peer = ErrorKind::peer,
                      resource = ErrorKind::resource;
  static const std::vector<Target> all = {
      {"idx", fuzz_idx, {data, resource}},
      {"npy", fuzz_npy, {data, resource}},
      {"npz", fuzz_npz, {data, resource}},
      {"zip", fuzz_zip, {data, resource}},
      {"jpeg", fuzz_jpeg, {data}},
      {"png", fuzz_png, {data}},
      {"webp", fuzz_webp, {data}},
      {"gif", fuzz_gif, {data}},
      {"bmp", fuzz_bmp, {data}},
      {"mask", fuzz_mask, {data}},
      {"wav", fuzz_wav, {data}},
      {"nifti", fuzz_nifti, {data, resource}},
      {"tar", fuzz_tar, {data}},
      {"webdataset", fuzz_webdataset, {data}},
      {"tfrecord", fuzz_tfrecord, {data}},
      {"tf_example", fuzz_tf_example, {data}},
      {"csv", fuzz_csv, {data, config}},
      {"json_lines", fuzz_json_lines, {data}},
      {"text_table", fuzz_text_table, {data}},
      {"megatron", fuzz_megatron, {data}},
      {"safetensors", fuzz_safetensors, {data}},
      {"manifest", fuzz_manifest, {data}},
      {"hdf5", fuzz_hdf5, {data}},
      {"hugging_face_config", fuzz_hugging_face_config, {data, config}},
      {"hugging_face_index", fuzz_hugging_face_index, {data}},
      {"tokenizer_json", fuzz_tokenizer_json, {data}},
      {"tiktoken", fuzz_tiktoken, {data, config}},
      {"sentencepiece", fuzz_sentencepiece, {data}},
      {"config", fuzz_config, {config}},
      {"expression", fuzz_expression, {config}},
      {"faults", fuzz_faults, {config}},
      {"tf_config", fuzz_tf_config, {config}},
      {"slurm", fuzz_slurm, {config}},
      {"slurm_names", fuzz_slurm_names, {}},
      {"slurm_counts", fuzz_slurm_counts, {}},
      {"hosts", fuzz_hosts, {config}},
      {"hostfile", fuzz_hostfile, {config}},
      {"agent_handshake", fuzz_agent_handshake, {peer}},
      {"agent_messages", fuzz_agent_messages, {peer}},
      {"flight_record", fuzz_flight_record, {data}},
      {"watch_messages", fuzz_watch_messages, {}},
      {"rank_status", fuzz_rank_status, {}},
      {"resize_request", fuzz_resize_request, {}},
      {"lock", fuzz_lock, {}},
      {"elf", fuzz_elf, {}},
      {"http", fuzz_http, {}},
      {"metrics_jsonl", fuzz_metrics_jsonl, {data, config}},
  };
  return all;
}

Outcome run(const Target& target, std::string_view bytes) {
  try {
    target.read(bytes);
  } catch (const Error& error) {
    const bool may = std::find(target.kinds.begin(), target.kinds.end(), error.kind()) != target.kinds.end();
    const int kind = static_cast<int>(error.kind());
    return {false, may ? "" : format("an error of another kind ({}): {}", kind, error.what())};
  } catch (const std::exception& error) {
    return {false, format("an exception other than Error: {}", error.what())};
  }
  return {true, ""};
}

void expect(bool condition, const char* what) {
  if (!condition) throw std::logic_error(what);
}

const std::string& fuzz_folder() {
  static const Folder folder;
  return folder.path;
}

std::string file_of(std::string_view bytes, const std::string& name) {
  const std::string path = fuzz_folder() + "/" + name;
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const bool written = file >= 0 && write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  if (file >= 0) close(file);
  expect(written, "a fuzz test cannot write its file");
  return path;
}

}  // namespace trainctl::fuzz
