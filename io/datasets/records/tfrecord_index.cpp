// Finds records and verifies their checksums.
#include "io/datasets/records/tfrecord_index.h"

#include <algorithm>
#include <cstring>

#include "core/base/crc32c.h"
#include "core/base/format.h"
#include "core/base/hash.h"
#include "io/datasets/arrays/inflate.h"
#include "io/datasets/dataset.h"

namespace trainctl {
namespace {

constexpr std::int64_t header_bytes = 12, sum_bytes = 4;
constexpr std::uint64_t longest_record = 1u << 30;

std::string record_name(const std::string& path, std::int64_t number) { return format("{}, record {}", path, number); }

}  // namespace

TfRecordIndex::TfRecordIndex(std::vector<std::string> files, const VisitRecord& visit) : files_(std::move(files)) {
  for (std::size_t file = 0; file < files_.size(); ++file) add_file(static_cast<std::uint32_t>(file), visit);
}

void TfRecordIndex::add_file(std::uint32_t file, const VisitRecord& visit) {
  const std::string& path = files_[file];
  const Bytes bytes = open_data(path);
  Cursor cursor(bytes);
  for (std::int64_t number = 0; cursor.left() > 0; ++number) {
    const std::string name = record_name(path, number);
    std::byte header[header_bytes];
    if (!cursor.read(header, header_bytes)) data_error(name, "is truncated within its header", "get the file again");
    std::uint64_t length = 0;
    std::uint32_t sum = 0;
    std::memcpy(&length, header, 8);
    std::memcpy(&sum, header + 8, 4);
    if (sum != masked_crc32c(header, 8)) {
      if (number == 0 && is_gzip(bytes)) data_error(path, "is compressed", "unpack it with gunzip");
      data_error(name, "the checksum of its length is wrong",
                 number == 0 ? "this may not be a TFRecord file" : "get the file again");
    }
    const std::int64_t left = std::max<std::int64_t>(0, cursor.left() - sum_bytes);
    if (cursor.left() < sum_bytes || length > static_cast<std::uint64_t>(left)) {
      data_error(name, format("is truncated: it has {} bytes, but only {} are left", length, left),
                 "get the file again");
    }
    if (length > longest_record) data_error(name, format("has {} bytes, which is more than is supported", length));
    const Span data{cursor.at(), cursor.at() + static_cast<std::int64_t>(length)};
    if (visit(cursor, data, name)) records_.push_back({data.begin, number, static_cast<std::uint32_t>(length), file});
    cursor.seek(data.end);
    cursor.read(&sum, sum_bytes);
    const std::uint64_t next[3] = {hash_, length, sum};
    hash_ = xxh3(next, sizeof next);
  }
}

std::string TfRecordIndex::name_of(std::int64_t number) const {
  return record_name(files_[record(number).file], record(number).number);
}

void TfRecordIndex::read(std::int64_t number, std::vector<std::byte>& data) const {
  const Record& found = record(number);
  const std::size_t length = found.length;
  const InputFile file(files_[found.file]);
  data.resize(length + sum_bytes);
  file.read(found.offset, data.data(), std::ssize(data));
  std::uint32_t sum = 0;
  std::memcpy(&sum, data.data() + length, sum_bytes);
  data.resize(length);
  if (sum != masked_crc32c(data.data(), length)) data_error(name_of(number), "is damaged: its checksum is wrong");
}

}  // namespace trainctl
