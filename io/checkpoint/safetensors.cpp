// Writes and reads safetensors files.
#include "io/checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/json_append.h"
#include "core/exec/interfaces/snapshot.h"

namespace trainctl {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

std::string_view dtype_name(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return "F32";
    case DType::float64:
      return "F64";
    case DType::bfloat16:
      return "BF16";
    case DType::float16:
      return "F16";
    case DType::int32:
      return "I32";
    case DType::int64:
      return "I64";
    case DType::uint8:
      return "U8";
  }
  return "?";
}

void require_different_names(std::span<const NamedTensor> tensors) {
  std::vector<std::string_view> names{"__metadata__"};
  for (const NamedTensor& tensor : tensors) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) throw Error(ErrorKind::internal, format("two tensors have the name '{}'", *twice));
}

}  // namespace

std::string safetensors_head(std::span<const NamedTensor> tensors, const std::map<std::string, std::string>& metadata) {
  require_different_names(tensors);
  std::uint64_t length = 0;
  std::string text(sizeof length, '\0');
  text += '{';
  if (!metadata.empty()) text += "\"__metadata__\":" + json_text(Json(metadata));
  std::int64_t offset = 0;
  for (const NamedTensor& tensor : tensors) {
    const Shape shape = tensor.extent.shape(tensor.shape);
    if (tensor.view.count != shape.count()) {
      throw Error(ErrorKind::internal, format("the size of tensor '{}' is wrong", tensor.name));
    }
    if (text.back() != '{') text += ',';
    append_json_string(text, tensor.name);
    text += ":{\"dtype\":\"";
    text += dtype_name(tensor.view.dtype);
    text += "\",\"shape\":";
    append_json_list(text, shape.sizes());
    text += ",\"data_offsets\":";
    append_json_list(text, std::array{offset, offset + tensor.view.bytes()});
    text += '}';
    offset += tensor.view.bytes();
  }
  text += '}';
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the tensors are aligned
  length = text.size() - sizeof length;
  std::memcpy(text.data(), &length, sizeof length);
  return text;
}

void write_safetensors(OutputFile& file, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
  const std::string head = safetensors_head(tensors, metadata);
  file.write(head.data(), std::ssize(head));
  for (const NamedTensor& tensor : tensors) file.write(tensor.view.data, tensor.view.bytes());
}

SafetensorsFile::SafetensorsFile(std::string path) : file_(std::move(path)) {
  if (file_.size() < 8)
    throw Error(ErrorKind::data, SourceLocation{file_.path()}, "too short for a safetensors file",
                "copy the file again");
  std::uint64_t length = 0;
  file_.read(0, &length, sizeof length);
  if (length > static_cast<std::uint64_t>(std::min(file_.size() - 8, largest_safetensors_header))) {
    throw Error(
        ErrorKind::data, SourceLocation{file_.path()},
        format("not a valid safetensors file: it claims a header of {} bytes in a file of {}", length, file_.size()),
        "copy the file again");
  }
  std::string text(length, '\0');
  file_.read(8, text.data(), static_cast<std::int64_t>(length));
  data_begin_ = 8 + static_cast<std::int64_t>(length);
  data_bytes_ = file_.size() - data_begin_;
  header_ = parse_safetensors_header(text, data_bytes_, file_.path());
}

void SafetensorsFile::read(const StoredTensor& tensor, void* to) const {
  file_.read(data_begin_ + tensor.begin, to, tensor.bytes());
}

FileSeal SafetensorsFile::read_all(void* to) const {
  constexpr std::int64_t chunk = 4 << 20;
  Sha256 hash;
  std::string head(static_cast<std::size_t>(data_begin_), '\0');
  file_.read(0, head.data(), data_begin_);
  hash.update(head.data(), head.size());
  for (std::int64_t offset = 0; offset < data_bytes_; offset += chunk) {
    char* piece = static_cast<char*>(to) + offset;
    const std::int64_t bytes = std::min(chunk, data_bytes_ - offset);
    file_.read(data_begin_ + offset, piece, bytes);
    hash.update(piece, static_cast<std::size_t>(bytes));
  }
  return {data_begin_ + data_bytes_, hash.finish()};
}

}  // namespace trainctl
