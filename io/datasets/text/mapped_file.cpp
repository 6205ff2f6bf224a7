// Maps files by mmap.
#include "io/datasets/text/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/files.h"
#include "io/datasets/dataset.h"

namespace trainctl {

Bytes map_file(const std::string& path) {
  const InputFile checked(path, data_role);  // refuses what is not a regular file
  const std::int64_t size = checked.size();
  if (size == 0) data_error(path, "is empty", "get the file again");
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw_file_error(path, "cannot be opened", errno, data_role);
  void* memory = mmap(nullptr, static_cast<std::size_t>(size), PROT_READ, MAP_SHARED, file, 0);
  const int error = errno;
  close(file);
  if (memory == MAP_FAILED) throw_file_error(path, "cannot be mapped into memory", error, data_role);
  const auto unmap = [size](const std::byte* bytes) {
    munmap(const_cast<std::byte*>(bytes), static_cast<std::size_t>(size));
  };
  return {std::shared_ptr<const std::byte>(static_cast<const std::byte*>(memory), unmap), size};
}

}  // namespace trainctl
