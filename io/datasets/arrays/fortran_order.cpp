// Reads elements in the order of the file and writes each to its place in C order.
#include "io/datasets/arrays/fortran_order.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/table.h"

namespace trainctl {
namespace {

// The place of an element: its indices in the dimensions of more than one element, and its number in C order.
class Place {
 public:
  explicit Place(const Shape& shape) {
    std::int64_t stride = 1;
    for (std::int64_t d = shape.rank() - 1; d >= 0; --d) {
      if (shape[d] > 1) dimensions_.insert(dimensions_.begin(), {shape[d], stride, 0});
      stride *= shape[d];
    }
  }

  // Whether both orders are the same.
  bool is_same_order() const { return dimensions_.size() < 2; }
  // The elements that follow in the first dimension, with the distance of their numbers in C order.
  std::int64_t left() const { return dimensions_[0].size - dimensions_[0].index; }
  std::int64_t stride() const { return dimensions_[0].stride; }
  std::int64_t number() const { return number_; }
  // Moves by up to left() elements in Fortran order.
  void advance(std::int64_t count) {
    for (Dimension& dimension : dimensions_) {
      dimension.index += count;
      number_ += count * dimension.stride;
      if (dimension.index < dimension.size) return;
      number_ -= dimension.index * dimension.stride;
      dimension.index = 0;
      count = 1;
    }
  }

 private:
  struct Dimension {
    std::int64_t size, stride, index;
  };
  std::vector<Dimension> dimensions_;
  std::int64_t number_ = 0;
};

template <std::size_t size>
void copy_elements(const std::byte* from, std::int64_t count, std::byte* to, std::int64_t stride) {
  for (std::int64_t i = 0; i < count; ++i) {
    std::memcpy(to + i * stride * static_cast<std::int64_t>(size), from + i * static_cast<std::int64_t>(size), size);
  }
}

void copy_elements(const std::byte* from, std::int64_t count, std::byte* to, std::int64_t stride, std::int64_t size) {
  switch (size) {
    case 1:
      return copy_elements<1>(from, count, to, stride);
    case 2:
      return copy_elements<2>(from, count, to, stride);
    case 4:
      return copy_elements<4>(from, count, to, stride);
    case 8:
      return copy_elements<8>(from, count, to, stride);
    default:
      require(false, "elements have an unknown size");
  }
}

void require_memory(std::int64_t bytes, const std::string& path) {
  if (bytes <= largest_in_memory) return;
  const std::optional<std::int64_t> available = available_memory();
  if (available && bytes > *available) {
    throw Error(ErrorKind::resource, SourceLocation{path},
                format("is in Fortran order and needs {} of memory, but only {} are free", byte_text(bytes),
                       byte_text(*available)),
                "save numpy.ascontiguousarray(x), whose samples are read from the file when they are needed");
  }
  log::info(
      format("{} is in Fortran order and is read into memory ({}); numpy.ascontiguousarray(x) is read from the "
             "file when it is needed",
             path, byte_text(bytes)));
}

}  // namespace

Bytes in_c_order(const Bytes& values, const Shape& shape, std::int64_t element_bytes, const std::string& path) {
  Place place(shape);
  if (values.size() == 0 || place.is_same_order()) return values;
  require_memory(values.size(), path);
  constexpr std::int64_t piece_bytes = 1 << 20;
  std::vector<std::byte> piece(static_cast<std::size_t>(std::min(piece_bytes, values.size())));
  std::shared_ptr<std::byte[]> memory =
      std::make_shared_for_overwrite<std::byte[]>(static_cast<std::size_t>(values.size()));
  for (std::int64_t offset = 0; offset < values.size(); offset += std::ssize(piece)) {
    const std::int64_t bytes = std::min(std::ssize(piece), values.size() - offset);
    values.read(offset, piece.data(), bytes);
    for (std::int64_t done = 0; done < bytes;) {
      const std::int64_t count = std::min(place.left(), (bytes - done) / element_bytes);
      copy_elements(piece.data() + done, count, memory.get() + place.number() * element_bytes, place.stride(),
                    element_bytes);
      place.advance(count);
      done += count * element_bytes;
    }
  }
  return {std::shared_ptr<const std::byte>(memory, memory.get()), values.size()};
}

}  // namespace trainctl
