// Arrays in the types that files store (idx, npy), and data sets made of arrays of samples, targets, or both.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor/shape.h"
#include "io/datasets/arrays/bytes.h"
#include "io/datasets/dataset.h"

namespace trainctl {

// The types of a stored array's elements.
enum class ElementType { uint8, int8, uint16, int16, uint32, int32, uint64, int64, float32, float64, float16 };

// The size of an element in bytes.
std::int64_t size_of(ElementType type);
constexpr bool is_integer(ElementType type) {
  return type != ElementType::float32 && type != ElementType::float64 && type != ElementType::float16;
}

struct Array {
  std::string path;  // for messages: "x.npy", "digits.npz:x"
  Shape shape;
  ElementType type = ElementType::uint8;
  bool big_endian = false;
  Bytes bytes;  // shape.count() elements in C order, not aligned; read from the file on demand if the array is large

  std::int64_t element_bytes() const { return size_of(type); }
};

// Converts elements [first, first + count) to float32. Throws NonFiniteError with the index of a finite float64 that is
// beyond the range of float32.
void convert(const Array& array, std::int64_t first, std::int64_t count, float* to);
// Converts elements [first, first + count) of an array of integers.
void convert(const Array& array, std::int64_t first, std::int64_t count, std::int64_t* to);

// The bytes of values in memory, which the returned object owns together with the caller.
template <class T>
Bytes bytes_of(std::shared_ptr<const std::vector<T>> values) {
  const auto* bytes = reinterpret_cast<const std::byte*>(values->data());
  const auto size = static_cast<std::int64_t>(values->size() * sizeof(T));
  return {std::shared_ptr<const std::byte>(std::move(values), bytes), size};
}
template <class T>
Bytes bytes_of(std::vector<T> values) {
  return bytes_of(std::make_shared<const std::vector<T>>(std::move(values)));
}

// The number of bytes of an array: the product of the sizes times the bytes of an element. Throws Error{data} if a size
// is negative or the product overflows.
std::int64_t checked_bytes(const Shape& shape, std::int64_t element_bytes, const std::string& path);

// Makes a data set of samples x [n, ...] and targets y [n], [n, 1] or [n, K]. Integer targets of one value each are
// classes, unless the config sets `classes: 0`, or does not set `classes` and the loss accepts values. Integer targets
// of several values each are the classes of positions if the loss accepts class numbers. All other targets are values.
// Samples get the shape in the config if it has another rank and the same number of elements: 784 values become an
// image of 28x28x1. If `class_names` is not empty, its size is the number of classes. `weights` [n] or [n, ...] are the
// weights of samples or of their positions. A warning names the first whole number of the training targets that float32
// rounds. Throws Error{data} if lengths differ, labels are out of range, or a weight is negative or not finite.
std::shared_ptr<const Dataset> array_dataset(Array x, Array y, const DeclaredInfo& declared,
                                             std::vector<std::string> class_names = {},
                                             std::optional<Array> weights = {});
// Make a data set of samples without targets and one of targets without samples, as members of a group.
std::shared_ptr<const Dataset> array_inputs(Array x, const DeclaredInfo& declared, std::optional<Array> weights = {});
std::shared_ptr<const Dataset> array_targets(Array y, const DeclaredInfo& declared, std::optional<Array> weights = {},
                                             std::vector<std::string> class_names = {});

}  // namespace trainctl
