// Writing and reading safetensors files.
#include "io/checkpoint/safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"

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

}  // namespace

void write_safetensors(OutputFile& file, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::int64_t offset = 0;
  for (const NamedTensor& tensor : tensors) {
    require(tensor.view.count == tensor.shape.count() && !header.contains(tensor.name), "tensor '" + tensor.name + "'");
    header[tensor.name] = {{"dtype", dtype_name(tensor.view.dtype)},
                           {"shape", tensor.shape.sizes()},
                           {"data_offsets", {offset, offset + tensor.view.bytes()}}};
    offset += tensor.view.bytes();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the tensors are aligned
  const std::uint64_t length = text.size();
  file.write(&length, sizeof length);
  file.write(text.data(), static_cast<std::int64_t>(length));
  for (const NamedTensor& tensor : tensors) file.write(tensor.view.data, tensor.view.bytes());
}

SafetensorsFile::SafetensorsFile(std::string path) : path_(std::move(path)) {
  do {
    descriptor_ = open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);  // a pipe is refused, not waited for
  } while (descriptor_ < 0 && errno == EINTR);
  if (descriptor_ < 0) throw_unreadable(path_, errno);
  try {
    struct stat status {};
    if (fstat(descriptor_, &status) != 0) throw_unreadable(path_, errno);
    if (!S_ISREG(status.st_mode)) throw Error(ErrorKind::data, Place{path_}, "no regular file");
    std::uint64_t length = 0;
    if (status.st_size < 8) throw Error(ErrorKind::data, Place{path_}, "too short for a safetensors file");
    read_at(0, &length, sizeof length);
    if (length > static_cast<std::uint64_t>(std::min<std::int64_t>(status.st_size - 8, largest_safetensors_header))) {
      throw Error(ErrorKind::data, Place{path_},
                  format("not a valid safetensors file: it claims a header of {} bytes in a file of {}", length,
                         static_cast<std::int64_t>(status.st_size)));
    }
    std::string text(length, '\0');
    read_at(8, text.data(), static_cast<std::int64_t>(length));
    data_begin_ = 8 + static_cast<std::int64_t>(length);
    data_bytes_ = status.st_size - data_begin_;
    header_ = parse_safetensors_header(text, data_bytes_, path_);
  } catch (...) {
    close(descriptor_);
    throw;
  }
}

SafetensorsFile::~SafetensorsFile() { close(descriptor_); }

void SafetensorsFile::read_at(std::int64_t offset, void* to, std::int64_t bytes) const {
  char* next = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t done =
        pread(descriptor_, next, static_cast<std::size_t>(std::min<std::int64_t>(bytes, 1 << 30)), offset);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) throw_unreadable(path_, errno);
    if (done == 0) throw Error(ErrorKind::data, Place{path_}, "the file ends early");
    next += done;
    offset += done;
    bytes -= done;
  }
}

void SafetensorsFile::read(const StoredTensor& tensor, void* to) const {
  read_at(data_begin_ + tensor.begin, to, tensor.bytes());
}

FileSeal SafetensorsFile::read_all(void* to) const {
  constexpr std::int64_t chunk = 4 << 20;
  Sha256 hash;
  std::string head(static_cast<std::size_t>(data_begin_), '\0');
  read_at(0, head.data(), data_begin_);
  hash.update(head.data(), head.size());
  for (std::int64_t offset = 0; offset < data_bytes_; offset += chunk) {
    char* part = static_cast<char*>(to) + offset;
    const std::int64_t bytes = std::min(chunk, data_bytes_ - offset);
    read_at(data_begin_ + offset, part, bytes);
    hash.update(part, static_cast<std::size_t>(bytes));
  }
  return {data_begin_ + data_bytes_, hash.finish()};
}

}  // namespace trainctl
