// Reads NIfTI-1 files: a header of 348 bytes, and the values.
#include "io/datasets/volumes/nifti.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/base/file_names.h"
#include "core/base/format.h"
#include "core/base/table.h"
#include "io/datasets/arrays/inflate.h"

namespace trainctl {
namespace {

constexpr std::int64_t header_bytes = 348;
constexpr std::int64_t largest_volume = std::int64_t{1} << 31;  // bytes of the stored values
constexpr const char* save_again = "save it again with nibabel: nibabel.save(nibabel.Nifti1Image(...), 'x.nii.gz')";

// The numbers of the types of values.
struct NiftiType {
  int number;
  ElementType type;
};
constexpr NiftiType nifti_types[] = {{2, ElementType::uint8},    {4, ElementType::int16},    {8, ElementType::int32},
                                     {16, ElementType::float32}, {64, ElementType::float64}, {256, ElementType::int8},
                                     {512, ElementType::uint16}, {768, ElementType::uint32}, {1024, ElementType::int64},
                                     {1280, ElementType::uint64}};

// The fields of a header, in the byte order of the file.
class NiftiHeader {
 public:
  NiftiHeader(const std::byte* bytes, const std::string& path) : bytes_(bytes) {
    swapped_ = number<std::int32_t>(0) != header_bytes;
    if (number<std::int32_t>(0) != header_bytes) data_error(path, "is not a NIfTI-1 file", save_again);
    check_magic(path);
  }

  bool big_endian() const { return swapped_ == (std::endian::native == std::endian::little); }
  template <class T>
  T number(std::int64_t offset) const {
    std::byte stored[sizeof(T)];
    std::copy_n(bytes_ + offset, sizeof(T), stored);
    if (swapped_) std::reverse(stored, stored + sizeof(T));
    T value;
    std::memcpy(&value, stored, sizeof(T));
    return value;
  }
  std::int64_t size(int dimension) const { return number<std::int16_t>(40 + 2 * dimension); }

 private:
  void check_magic(const std::string& path) const {
    if (std::memcmp(bytes_ + 344, "ni1", 4) == 0) {
      data_error(path, "is a header whose values are in another file, which is not supported", save_again);
    }
    if (std::memcmp(bytes_ + 344, "n+1", 4) != 0) data_error(path, "is not a NIfTI-1 file", save_again);
  }

  const std::byte* bytes_;
  bool swapped_ = false;  // whether the byte order is not that of this machine
};

// Sets the shape, the type and the scale; the bytes follow at the returned offset in the file.
std::int64_t read_fields(const NiftiHeader& header, NiftiVolume& volume) {
  const std::string& path = volume.stored.path;
  const std::int64_t dimensions = header.size(0);
  if (dimensions < 3 || dimensions > 7) {
    data_error(path, format("its header states {}, but only volumes are read, which have 3 to 7",
                            counted(dimensions, "dimension")));
  }
  std::vector<std::int64_t> sizes;
  std::int64_t channels = 1;
  for (int k = 1; k <= dimensions; ++k) {
    const std::int64_t size = header.size(k);
    if (size < 1) data_error(path, format("its header states the size {} of dimension {}", size, k));
    if (k <= 3) sizes.insert(sizes.begin(), size);
    if (k > 3 && size > 1 && channels > 1) {
      data_error(path, "has several dimensions besides those of a volume, but only one is read, that of the channels");
    }
    if (k > 3 && size > 1) channels = size;
  }
  if (channels > 1) sizes.insert(sizes.begin(), channels);
  volume.stored.shape = Shape(std::move(sizes));
  const int number = header.number<std::int16_t>(70);
  const auto* type = std::ranges::find(nifti_types, number, &NiftiType::number);
  if (type == std::end(nifti_types)) {
    data_error(path, format("holds values of the NIfTI type {}, which is not supported", number), save_again);
  }
  volume.stored.type = type->type;
  volume.stored.big_endian = header.big_endian();
  const double slope = double{header.number<float>(112)}, intercept = double{header.number<float>(116)};
  if (slope != 0 && std::isfinite(slope) && std::isfinite(intercept)) {
    volume.slope = slope;
    volume.intercept = intercept;
  }
  constexpr double usual_begin = 352;  // after the header and four bytes that name no extension
  const double stated = double{header.number<float>(108)}, begin = stated == 0 ? usual_begin : stated;
  if (!(begin >= header_bytes && begin <= 1e9) || begin != std::floor(begin)) {
    data_error(path, format("its header states that the values begin at byte {}", begin));
  }
  return static_cast<std::int64_t>(begin);
}

}  // namespace

Shape NiftiVolume::shape() const {
  const Shape& s = stored.shape;
  return s.rank() == 3 ? Shape{s[0], s[1], s[2], 1} : Shape{s[1], s[2], s[3], s[0]};
}

void NiftiVolume::read(float* to) const {
  const Shape to_shape = shape();
  const std::int64_t channels = to_shape[3], points = to_shape.count() / channels;
  if (channels == 1) {
    convert(stored, 0, points, to);
  } else {
    std::vector<float> channel(static_cast<std::size_t>(points));
    for (std::int64_t c = 0; c < channels; ++c) {
      convert(stored, c * points, points, channel.data());
      for (std::int64_t i = 0; i < points; ++i) to[i * channels + c] = channel[static_cast<std::size_t>(i)];
    }
  }
  if (slope == 1 && intercept == 0) return;
  for (std::int64_t i = 0; i < points * channels; ++i) {
    to[i] = static_cast<float>(slope * double{to[i]} + intercept);
  }
}

bool is_nifti_name(const std::string& name) { return has_ending(name, {".nii", ".nii.gz"}); }

NiftiVolume read_nifti(const std::string& path) {
  NiftiVolume volume;
  volume.stored.path = path;
  const Bytes file = open_data(path);
  const bool compressed = is_gzip(file);
  const Bytes head = compressed ? inflate_prefix(file, Deflate::gzip, header_bytes, path) : prefix(file, header_bytes);
  if (head.size() < header_bytes) {
    data_error(path, format("is not a NIfTI-1 file: it has {}, and its header needs {}", counted(head.size(), "byte"),
                            header_bytes));
  }
  const std::int64_t begin = read_fields(NiftiHeader(head.in_memory(), path), volume);
  const std::int64_t bytes = checked_bytes(volume.stored.shape, volume.stored.element_bytes(), path);
  if (bytes > largest_volume) {
    data_error(path, format("its header states a volume of {}, which is more than is supported",
                            to_string(volume.stored.shape)));
  }
  const Bytes content = compressed ? inflate_exactly(file, Deflate::gzip, begin + bytes, path) : file;
  if (content.size() < begin + bytes) {
    data_error(path,
               format("its header states {} bytes of values from byte {} on, but the file has only {} more", bytes,
                      begin, std::max<std::int64_t>(0, content.size() - begin)),
               "the file is cut off: copy it again, or remove it");
  }
  volume.stored.bytes = content.slice(begin, bytes);
  return volume;
}

}  // namespace trainctl
