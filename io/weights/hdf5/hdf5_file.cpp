// Reading HDF5 files.
#include "io/weights/hdf5/hdf5_file.h"

#include <hdf5.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"

namespace trainctl {
namespace {

constexpr std::size_t most_objects = 200'000;
constexpr int most_levels = 32;
constexpr hsize_t most_text = 1 << 16;  // bytes of an attribute

// An open object of the library, closed with this one.
class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  explicit operator bool() const { return id_ >= 0; }
  operator hid_t() const { return id_; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

// Collects the names of hard links, which H5Literate visits; ends where there are too many.
herr_t collect(hid_t, const char* name, const H5L_info_t* link, void* names) {
  auto& list = *static_cast<std::vector<std::string>*>(names);
  if (link->type == H5L_TYPE_HARD) list.emplace_back(name);
  return list.size() > most_objects ? 1 : 0;
}

}  // namespace

Hdf5File::Hdf5File(const std::string& path, std::string shown) : shown_(std::move(shown)) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // failures are told by our errors, not on standard error
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_file_locking(access, false, true);  // nobody writes, and some file systems have no locks
  file_ = H5Fopen(path.c_str(), H5F_ACC_RDONLY, access);
  if (file_ < 0) damaged("its head cannot be read, or it is truncated");
  try {
    list("", 0);
  } catch (...) {
    H5Fclose(file_);
    throw;
  }
}

Hdf5File::~Hdf5File() { H5Fclose(file_); }

void Hdf5File::damaged(const std::string& what) const {
  throw Error(ErrorKind::data, Place{shown_}, "a damaged HDF5 file: " + what, "get the file again");
}

void Hdf5File::list(const std::string& group, int depth) {
  if (depth > most_levels) damaged("its groups are nested too deep");
  const Handle open(H5Gopen2(file_, ("/" + group).c_str(), H5P_DEFAULT), H5Gclose);
  if (!open) damaged(format("group '{}' cannot be read", group));
  std::vector<std::string> names;
  if (H5Literate(open, H5_INDEX_NAME, H5_ITER_INC, nullptr, collect, &names) < 0) {
    damaged(format("group '{}' cannot be read", group));
  }
  objects_ += names.size();
  if (objects_ > most_objects) damaged(format("it has more than {} objects", most_objects));
  for (const std::string& name : names) {
    const std::string path = group.empty() ? name : group + "/" + name;
    H5O_info_t info;
    if (H5Oget_info_by_name(open, name.c_str(), &info, H5P_DEFAULT) < 0) damaged(format("'{}' cannot be read", path));
    if (info.type == H5O_TYPE_GROUP) list(path, depth + 1);
    if (info.type == H5O_TYPE_DATASET) add(path);
  }
}

void Hdf5File::add(const std::string& path) {
  const Handle data(H5Dopen2(file_, path.c_str(), H5P_DEFAULT), H5Dclose);
  const auto fail = [&]() { damaged(format("data set '{}' cannot be read", path)); };
  if (!data) fail();
  const Handle type(H5Dget_type(data), H5Tclose), space(H5Dget_space(data), H5Sclose);
  const Handle creation(H5Dget_create_plist(data), H5Pclose);
  if (!type || !space || !creation) fail();
  if (H5Tget_class(type) != H5T_FLOAT) return;
  hsize_t sizes[H5S_MAX_RANK];
  const int rank = H5Sget_simple_extent_dims(space, sizes, nullptr);
  if (rank < 0) fail();
  const auto largest = static_cast<hsize_t>(std::int64_t{1} << 56);
  hsize_t count = 1;
  for (int i = 0; i < rank; ++i) {
    if (__builtin_mul_overflow(count, sizes[i], &count) || count > largest) {
      damaged(format("data set '{}' is larger than any file", path));
    }
  }
  const H5D_layout_t layout = H5Pget_layout(creation);
  if (layout == H5D_VIRTUAL || H5Pget_external_count(creation) != 0) {
    damaged(format("data set '{}' lies in another file", path));
  }
  if (layout == H5D_CHUNKED) {
    hsize_t chunk[H5S_MAX_RANK], values = 1;
    if (H5Pget_chunk(creation, H5S_MAX_RANK, chunk) != rank) fail();
    for (int i = 0; i < rank; ++i) {
      const bool fits = !__builtin_mul_overflow(values, chunk[i], &values);
      if (!fits || chunk[i] > std::max<hsize_t>(2 * sizes[i], 1024)) {
        damaged(format("data set '{}' has chunks larger than itself", path));
      }
    }
  }
  data_sets_.push_back({path, Shape(std::vector<std::int64_t>(sizes, sizes + rank))});
}

std::optional<std::string> Hdf5File::text_attribute(const std::string& group, const std::string& name) const {
  const std::string path = "/" + group;
  if (H5Aexists_by_name(file_, path.c_str(), name.c_str(), H5P_DEFAULT) <= 0) return std::nullopt;
  const Handle attribute(H5Aopen_by_name(file_, path.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  const auto fail = [&]() { damaged(format("attribute '{}' of '{}' cannot be read", name, group)); };
  if (!attribute) fail();
  const Handle type(H5Aget_type(attribute), H5Tclose), space(H5Aget_space(attribute), H5Sclose);
  if (!type || !space) fail();
  if (H5Tget_class(type) != H5T_STRING || H5Sget_simple_extent_npoints(space) != 1) return std::nullopt;
  if (H5Tis_variable_str(type) > 0) {
    char* text = nullptr;
    if (H5Aread(attribute, type, &text) < 0) fail();
    std::string copied = text == nullptr ? "" : text;
    H5free_memory(text);
    return copied;
  }
  const std::size_t size = H5Tget_size(type);
  if (size > most_text || H5Aget_storage_size(attribute) != size) fail();
  std::string text(size, '\0');
  if (H5Aread(attribute, type, text.data()) < 0) fail();
  text.resize(std::min(text.find('\0'), text.size()));
  return text;
}

void Hdf5File::read(const DataSet& data_set, float* to) const {
  const Handle data(H5Dopen2(file_, data_set.path.c_str(), H5P_DEFAULT), H5Dclose);
  if (!data || H5Dread(data, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, to) < 0) {
    damaged(format("the values of '{}' cannot be read", data_set.path));
  }
}

}  // namespace trainctl
