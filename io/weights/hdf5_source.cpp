// Reads fields of an HDF5 file, and checks every size.
#include "io/weights/hdf5_source.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"

namespace trainctl {
namespace {

constexpr std::int64_t max_blocks = 500'000;
// Bytes of headers, names and texts that may be read: a multiple of the file's size, and a constant number.
constexpr std::uint64_t max_multiple = 4, additional_bytes = 32 << 20;

}  // namespace

Hdf5Source::Hdf5Source(Bytes file, std::string shown)
    : file_(std::move(file)),
      shown_(std::move(shown)),
      left_(max_multiple * static_cast<std::uint64_t>(file_.size()) + additional_bytes) {}

void Hdf5Source::damaged(const std::string& what) const {
  throw Error(ErrorKind::data, SourceLocation{shown_}, "a damaged HDF5 file: " + what, "get the file again");
}

void Hdf5Source::unknown(const std::string& what) const {
  throw Error(ErrorKind::data, SourceLocation{shown_}, "an HDF5 file with " + what + ", which is not supported",
              "save it again from Keras, or with h5py without options");
}

void Hdf5Source::count_block() {
  if (++blocks_ > max_blocks) damaged("it refers to itself, or has too many objects");
}

void Hdf5Source::spend(std::uint64_t bytes) const {
  if (bytes > left_)
    damaged("its objects share headers and texts so often that reading them needs many times the file's size");
  left_ -= bytes;
}

Hdf5Fields::Hdf5Fields(const Hdf5Source& source, std::uint64_t offset, std::uint64_t size) : source_(&source) {
  const std::uint64_t end = source.size();
  if (offset > end || size > end - offset)
    source.damaged(format("an object is at byte {}, after the end of the file", offset));
  source.spend(size);
  bytes_.resize(size);
  source.bytes().read(static_cast<std::int64_t>(offset), bytes_.data(), static_cast<std::int64_t>(size));
}

std::uint64_t Hdf5Fields::number(std::size_t bytes) {
  std::uint64_t value = 0;
  const std::string field = text(bytes);
  for (std::size_t i = bytes; i-- > 0;) value = value << 8 | static_cast<unsigned char>(field[i]);
  return value;
}

std::string Hdf5Fields::text(std::size_t bytes) {
  if (bytes > left()) source_->damaged("a header is too short");
  at_ += bytes;
  return bytes_.substr(at_ - bytes, bytes);
}

void Hdf5Fields::skip(std::size_t bytes) { text(std::min(bytes, left())); }

void Hdf5Fields::expect(const std::string& signature) {
  if (text(signature.size()) != signature) source_->damaged(format("the signature {} is missing", signature));
}

}  // namespace trainctl
