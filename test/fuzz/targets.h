// The targets of the fuzz tests: everything that reads bytes from outside, each called with any bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"

namespace trainctl::fuzz {

struct Target {
  const char* name;  // also the name of its folder in test/fuzz/corpus
  // Reads the bytes and everything that they describe. The bytes are valid during the call only.
  void (*read)(std::string_view bytes);
  std::vector<ErrorKind> kinds;  // the kinds of errors with which it may refuse the bytes
};

const std::vector<Target>& targets();

struct Outcome {
  bool is_read = false;  // no exception was thrown
  std::string fault;     // describes an exception other than an Error of a kind that the target may throw
};

Outcome run(const Target& target, std::string_view bytes);

// Throws std::logic_error, which no target may throw, unless `condition` is true: `what` was expected of a reader.
void expect(bool condition, const char* what);

// Writes the bytes to a file of this name in a folder of this process, and returns its path. The file is replaced by
// the next call with its name. The folder is removed when the process ends normally.
std::string file_of(std::string_view bytes, const std::string& name);
// The path of the folder.
const std::string& fuzz_folder();

// Groups of readers, each in a file of its own.
void fuzz_idx(std::string_view bytes);
void fuzz_npy(std::string_view bytes);
void fuzz_npz(std::string_view bytes);
void fuzz_zip(std::string_view bytes);

void fuzz_jpeg(std::string_view bytes);
void fuzz_png(std::string_view bytes);
void fuzz_webp(std::string_view bytes);
void fuzz_gif(std::string_view bytes);
void fuzz_bmp(std::string_view bytes);
void fuzz_mask(std::string_view bytes);
void fuzz_wav(std::string_view bytes);
void fuzz_nifti(std::string_view bytes);

void fuzz_tar(std::string_view bytes);
void fuzz_webdataset(std::string_view bytes);
void fuzz_tfrecord(std::string_view bytes);
void fuzz_tf_example(std::string_view bytes);
void fuzz_csv(std::string_view bytes);

void fuzz_json_lines(std::string_view bytes);
void fuzz_text_table(std::string_view bytes);
void fuzz_megatron(std::string_view bytes);

void fuzz_safetensors(std::string_view bytes);
void fuzz_manifest(std::string_view bytes);
void fuzz_hdf5(std::string_view bytes);
void fuzz_hugging_face_config(std::string_view bytes);
void fuzz_hugging_face_index(std::string_view bytes);

void fuzz_tokenizer_json(std::string_view bytes);
void fuzz_tiktoken(std::string_view bytes);
void fuzz_sentencepiece(std::string_view bytes);

void fuzz_config(std::string_view bytes);
void fuzz_expression(std::string_view bytes);
void fuzz_faults(std::string_view bytes);

void fuzz_tf_config(std::string_view bytes);
void fuzz_slurm(std::string_view bytes);
void fuzz_slurm_names(std::string_view bytes);
void fuzz_slurm_counts(std::string_view bytes);
void fuzz_hosts(std::string_view bytes);
void fuzz_hostfile(std::string_view bytes);
void fuzz_agent_handshake(std::string_view bytes);
void fuzz_agent_messages(std::string_view bytes);
void fuzz_flight_record(std::string_view bytes);
void fuzz_watch_messages(std::string_view bytes);
void fuzz_rank_status(std::string_view bytes);
void fuzz_resize_request(std::string_view bytes);
void fuzz_lock(std::string_view bytes);
void fuzz_elf(std::string_view bytes);

void fuzz_http(std::string_view bytes);
void fuzz_metrics_jsonl(std::string_view bytes);

}  // namespace trainctl::fuzz
