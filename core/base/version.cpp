// Returns the version that the build system defines, and reads the build id from the ELF notes of the running program.
#include "core/base/version.h"

#include <elf.h>
#include <link.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "core/base/format.h"
#include "core/base/hash.h"

namespace trainctl {
namespace {

std::string hexadecimal(const unsigned char* bytes, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += format("{:02x}", bytes[i]);
  return text;
}

std::size_t padded(std::size_t bytes) { return (bytes + 3) / 4 * 4; }

// Returns the build id from the notes of an ELF segment, or "" if it has none.
std::string find_build_id(const unsigned char* notes, std::size_t bytes) {
  ElfW(Nhdr) note{};
  for (std::size_t at = 0; at + sizeof note <= bytes;) {
    std::memcpy(&note, notes + at, sizeof note);
    const std::size_t name = at + sizeof note, value = name + padded(note.n_namesz);
    if (value + note.n_descsz > bytes) break;
    const bool is_gnu = note.n_namesz == 4 && std::memcmp(notes + name, "GNU", 4) == 0;
    if (is_gnu && note.n_type == NT_GNU_BUILD_ID) return hexadecimal(notes + value, note.n_descsz);
    at = value + padded(note.n_descsz);
  }
  return "";
}

// The callback of dl_iterate_phdr(), called for each loaded object. The program itself comes first; returning 1 ends
// the iteration after it.
int read_program_build_id(dl_phdr_info* object, std::size_t, void* found) {
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* notes = reinterpret_cast<const unsigned char*>(object->dlpi_addr + segment.p_vaddr);
    std::string id = find_build_id(notes, segment.p_memsz);
    if (!id.empty()) *static_cast<std::string*>(found) = std::move(id);
  }
  return 1;
}

}  // namespace

std::string_view version() { return TRAINCTL_VERSION; }

std::string build_id() {
  std::string id;
  dl_iterate_phdr(read_program_build_id, &id);
  if (!id.empty()) return id;
  std::ostringstream file;
  file << std::ifstream("/proc/self/exe", std::ios::binary).rdbuf();
  const std::string bytes = std::move(file).str();
  return format("{:016x}", xxh3(bytes.data(), bytes.size()));
}

}  // namespace trainctl
