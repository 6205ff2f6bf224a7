// Reads IDX files.
#include "io/datasets/arrays/idx.h"

#include <optional>

#include "core/base/format.h"
#include "io/datasets/arrays/inflate.h"
#include "io/datasets/options.h"

namespace trainctl {
namespace {

std::optional<ElementType> element_type(std::byte code) {
  switch (static_cast<int>(code)) {
    case 0x08:
      return ElementType::uint8;
    case 0x09:
      return ElementType::int8;
    case 0x0B:
      return ElementType::int16;
    case 0x0C:
      return ElementType::int32;
    case 0x0D:
      return ElementType::float32;
    case 0x0E:
      return ElementType::float64;
    default:
      return std::nullopt;
  }
}

constexpr std::int64_t longest_idx_header = 4 + 4 * 8;

// Sets the type and shape of the array; returns the length of the header in bytes.
std::int64_t parse_idx_header(const Bytes& head, Array& array) {
  const std::byte* bytes = head.in_memory();
  if (head.size() < 4) data_error(array.path, "is truncated: an IDX file begins with 4 bytes", "get the file again");
  const std::optional<ElementType> type = element_type(bytes[2]);
  const auto dimensions = static_cast<std::int64_t>(bytes[3]);
  if (bytes[0] != std::byte{0} || bytes[1] != std::byte{0} || !type || dimensions < 1 || dimensions > 8) {
    data_error(array.path,
               format("is not an IDX file: it begins with {:02x} {:02x} {:02x} {:02x}", static_cast<int>(bytes[0]),
                      static_cast<int>(bytes[1]), static_cast<int>(bytes[2]), static_cast<int>(bytes[3])));
  }
  const std::int64_t length = 4 + 4 * dimensions;
  if (head.size() < length) data_error(array.path, "is truncated within its header", "get the file again");
  std::vector<std::int64_t> sizes;
  for (std::int64_t at = 4; at < length; at += 4) {
    std::int64_t size = 0;
    for (int i = 0; i < 4; ++i) size = size << 8 | static_cast<std::int64_t>(bytes[at + i]);
    sizes.push_back(size);
  }
  array.type = *type;
  array.big_endian = true;
  array.shape = Shape(std::move(sizes));
  return length;
}

std::string find_mnist_file(const std::string& folder, const std::string& name) {
  if (std::string path = mnist_file(folder, name); !path.empty()) return path;
  data_error(folder, format("has no file {} or {}.gz", name, name),
             "put MNIST's four files there as they are distributed; configs of trainctl look for them in mnist/ below "
             "the folder that TRAINCTL_DATA names (default: data)");
}

// Reads the images of an IDX file; images without a dimension for channels get one channel.
Array read_idx_images(const std::string& path) {
  Array x = read_idx(path);
  if (x.shape.rank() == 3) x.shape = Shape{x.shape[0], x.shape[1], x.shape[2], 1};
  return x;
}

struct IdxOptions final : DatasetOptions {
  std::shared_ptr<const Dataset> open(const DataLocation& where, SplitKind split, const DeclaredInfo& known,
                                      std::uint64_t) const override {
    DeclaredInfo declared = known;
    declared.use.target_values = false;  // a file of labels always holds classes
    IdxFiles files{where.images.text, where.labels.text};
    if (!where.path.empty()) {
      files = find_mnist_files(where.path.text, split == SplitKind::training ? "train" : "t10k",
                               declared.targets_may_miss());
    }
    if (declared.targets_may_miss() && !files.images.empty() && files.labels.empty()) {
      return array_inputs(read_idx_images(files.images), declared);
    }
    if (files.images.empty() || files.labels.empty())
      throw Error(ErrorKind::config, "idx needs `path`, or `images` and `labels`");
    return idx_dataset(files.images, files.labels, declared);
  }
  std::vector<std::string> files_of(const DataLocation& where) const override {
    return where.path.empty() ? DatasetOptions::files_of(where) : std::vector<std::string>();
  }
};

}  // namespace

Array read_idx(const std::string& path) {
  Array array;
  array.path = path;
  Bytes file = open_data(path);
  const bool gzip = is_gzip(file);
  const std::int64_t header = parse_idx_header(
      gzip ? inflate_prefix(file, Deflate::gzip, longest_idx_header, path) : prefix(file, longest_idx_header), array);
  const std::int64_t values = checked_bytes(array.shape, array.element_bytes(), path);
  if (gzip) {
    file = inflate_exactly(file, Deflate::gzip, header + values, path);
  } else if (file.size() != header + values) {
    data_error(path,
               format("{}: {} bytes, but its header says {}",
                      file.size() < header + values ? "is truncated" : "is too long", file.size(), header + values),
               "get the file again");
  }
  array.bytes = loaded_if_small(file.slice(header, values));
  return array;
}

std::shared_ptr<const Dataset> idx_dataset(const std::string& images, const std::string& labels,
                                           const DeclaredInfo& declared) {
  return array_dataset(read_idx_images(images), read_idx(labels), declared);
}

std::string mnist_file(const std::string& folder, const std::string& name) {
  std::string dotted = name;
  if (const std::size_t dash = name.rfind("-idx"); dash != std::string::npos) dotted[dash] = '.';
  for (const std::string& parent : {folder, folder + "/" + name, folder + "/" + dotted}) {
    for (const std::string& stem : {name, dotted}) {
      for (const char* ending : {"", ".gz"}) {
        std::string path = parent + "/" + stem + ending;
        if (file_type(path) == FileType::regular) return path;
      }
    }
  }
  return "";
}

IdxFiles find_mnist_files(const std::string& folder, const std::string& prefix, bool labels_optional) {
  const std::string labels = prefix + "-labels-idx1-ubyte";
  return {find_mnist_file(folder, prefix + "-images-idx3-ubyte"),
          labels_optional ? mnist_file(folder, labels) : find_mnist_file(folder, labels)};
}

Section idx_choice() {
  return Keys<IdxOptions>("idx", "Files in MNIST's IDX format, also compressed (.gz).")
      .key(
          "path", &IdxOptions::path,
          "A folder with MNIST's file names (train-images-idx3-ubyte or train-images.idx3-ubyte): train-* are read for "
          "training, t10k-* for validation and test. All keys accept lists, whose samples are concatenated.")
      .key("images", &IdxOptions::images, "The file of samples; images of 28x28 become samples of 28x28x1.")
      .key("labels", &IdxOptions::labels, "The file of labels, from 0.");
}

}  // namespace trainctl
