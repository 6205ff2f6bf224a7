// Reads the symbol tables of an ELF file by pread, with bounds, since any file may be mapped in a process.
#include "parallel/launch/watch/elf_functions.h"

#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "core/base/terminal_text.h"

namespace trainctl {
namespace {

constexpr std::uint64_t largest_table = std::uint64_t{1} << 28;  // bytes; a larger table is not read

// Removes the parts of a demangled name between balanced brackets.
std::string without_brackets(const std::string& name, char open, char close) {
  std::string kept;
  int depth = 0;
  for (const char c : name) {
    if (c == open) ++depth;
    if (depth == 0) kept += c;
    if (c == close && depth > 0) --depth;
  }
  return kept;
}

}  // namespace

ElfFunctions::ElfFunctions(const std::string& path) : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  const std::vector<std::uint8_t> header = bytes(0, sizeof(Elf64_Ehdr));
  if (header.size() != sizeof(Elf64_Ehdr) || std::memcmp(header.data(), ELFMAG, SELFMAG) != 0 ||
      header[EI_CLASS] != ELFCLASS64) {
    return;
  }
  read_sections(header);
  std::stable_sort(functions_.begin(), functions_.end(),
                   [](const Function& a, const Function& b) { return a.begin < b.begin; });
}

ElfFunctions::~ElfFunctions() {
  if (descriptor_ >= 0) close(descriptor_);
}

std::vector<std::uint8_t> ElfFunctions::bytes(std::uint64_t offset, std::size_t count) const {
  std::vector<std::uint8_t> read(count);
  std::size_t done = 0;
  while (descriptor_ >= 0 && done < count) {
    const ssize_t got = pread(descriptor_, read.data() + done, count - done, static_cast<off_t>(offset + done));
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  read.resize(done);
  return read;
}

template <class T>
std::vector<T> ElfFunctions::table(std::uint64_t offset, std::uint64_t size) const {
  if (size > largest_table) return {};
  const std::vector<std::uint8_t> data = bytes(offset, size);
  std::vector<T> entries(data.size() / sizeof(T));
  if (!entries.empty()) std::memcpy(entries.data(), data.data(), entries.size() * sizeof(T));
  return entries;
}

void ElfFunctions::read_sections(const std::vector<std::uint8_t>& header) {
  Elf64_Ehdr file{};
  std::memcpy(&file, header.data(), sizeof file);
  for (const auto& part : table<Elf64_Phdr>(file.e_phoff, std::uint64_t{file.e_phnum} * sizeof(Elf64_Phdr))) {
    if (part.p_type == PT_LOAD) segments_.push_back({part.p_offset, part.p_filesz, part.p_vaddr});
  }
  const auto sections = table<Elf64_Shdr>(file.e_shoff, std::uint64_t{file.e_shnum} * sizeof(Elf64_Shdr));
  for (const Elf64_Shdr& section : sections) {
    if ((section.sh_type != SHT_SYMTAB && section.sh_type != SHT_DYNSYM) || section.sh_link >= sections.size())
      continue;
    const Elf64_Shdr& texts = sections[section.sh_link];
    std::vector<char> names = table<char>(texts.sh_offset, texts.sh_size);
    names.push_back('\0');
    for (const auto& symbol : table<Elf64_Sym>(section.sh_offset, section.sh_size)) {
      const int type = ELF64_ST_TYPE(symbol.st_info);
      if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol.st_shndx == SHN_UNDEF || symbol.st_size == 0) continue;
      if (symbol.st_name >= names.size()) continue;
      functions_.push_back({symbol.st_value, symbol.st_value + symbol.st_size, &names[symbol.st_name]});
    }
  }
}

const ElfFunctions::Function* ElfFunctions::at(std::uint64_t address) const {
  const auto after = std::upper_bound(functions_.begin(), functions_.end(), address,
                                      [](std::uint64_t value, const Function& each) { return value < each.begin; });
  // A few symbols may lie within a function.
  constexpr int most_within = 8;
  auto each = after;
  for (int i = 0; i < most_within && each != functions_.begin(); ++i) {
    --each;
    if (address < each->end) return &*each;
  }
  return nullptr;
}

std::optional<std::uint64_t> ElfFunctions::address_of(std::uint64_t offset) const {
  for (const Segment& segment : segments_) {
    if (offset >= segment.offset && offset - segment.offset < segment.size)
      return segment.address + (offset - segment.offset);
  }
  return {};
}

std::string readable_function(const std::string& name) {
  constexpr std::size_t longest = 80;
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> demangled(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                         std::free);
  std::string text = status == 0 && demangled != nullptr ? demangled.get() : name;
  if (status == 0) {
    constexpr std::string_view unnamed = "(anonymous namespace)::", own = "trainctl::";
    for (const std::string_view part : {unnamed, own}) {
      for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at))
        text.erase(at, part.size());
    }
    if (text.find("operator") == std::string::npos) {
      text = without_brackets(text, '<', '>');
      text = text.substr(0, text.find('('));
    }
    if (const std::size_t space = text.rfind(' ');
        space != std::string::npos && text.find("operator") == std::string::npos)
      text.erase(0, space + 1);  // the type of the result
  }
  if (text.size() > longest) text = text.substr(0, longest) + "...";
  return terminal_word(text);
}

}  // namespace trainctl
