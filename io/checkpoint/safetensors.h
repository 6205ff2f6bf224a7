// Reads and writes safetensors files: eight bytes with the length of a JSON header, the header, and the tensors' bytes,
// little-endian, without gaps. https://github.com/huggingface/safetensors describes the format; float8 and boolean
// tensors are not supported.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/files.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"
#include "io/checkpoint/atomic_file.h"

namespace trainctl {

struct NamedTensor;

// A tensor of a file. Its bytes are [begin, end), counted from the end of the header.
struct StoredTensor {
  std::string name;
  DType dtype = DType::float32;
  Shape shape;
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t bytes() const { return end - begin; }
};

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;            // in the order of their data in the file
  std::map<std::string, std::string> metadata;  // the object "__metadata__" of the header

  // Returns null if there is no tensor of this name.
  const StoredTensor* find(std::string_view name) const;
};

// Longest header in bytes that the format allows.
inline constexpr std::int64_t largest_safetensors_header = 100'000'000;

// Parses the JSON header of a file that has `data_bytes` after the header. Tensors must cover these bytes exactly,
// without overlap and gap. Memory stays in proportion to the header's length. Throws Error{data} that begins with
// `path`.
SafetensorsHeader parse_safetensors_header(std::string_view header, std::int64_t data_bytes, const std::string& path);

// Returns what precedes the tensors' bytes in a file with these tensors, or shards with the shapes of their extents, in
// the given order: the length of the header, and the header. Names must be unique.
std::string safetensors_head(std::span<const NamedTensor> tensors,
                             const std::map<std::string, std::string>& metadata = {});

// Writes a whole file.
void write_safetensors(OutputFile& file, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata = {});

// A file open for reading. The constructor throws Error{data} if it cannot be opened or is not a safetensors file.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(std::string path);

  const SafetensorsHeader& header() const { return header_; }
  std::int64_t data_bytes() const { return data_bytes_; }

  // Reads one tensor's bytes.
  void read(const StoredTensor& tensor, void* to) const;
  // Reads all data_bytes() and returns the seal of the whole file.
  FileSeal read_all(void* to) const;

 private:
  InputFile file_;
  std::int64_t data_begin_ = 0;
  std::int64_t data_bytes_ = 0;
  SafetensorsHeader header_;
};

}  // namespace trainctl
