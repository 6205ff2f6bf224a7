// The functions of an ELF file, a program or a shared library, by their addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace trainctl {

class ElfFunctions {
 public:
  // A function occupies the addresses [begin, end) of the file's address space.
  struct Function {
    std::uint64_t begin = 0, end = 0;
    std::string name;  // as the linker knows it
  };

  // Reads the symbol tables. A file that cannot be read or is no ELF file of 64 bits has no functions.
  explicit ElfFunctions(const std::string& path);
  ~ElfFunctions();
  ElfFunctions(const ElfFunctions&) = delete;
  ElfFunctions& operator=(const ElfFunctions&) = delete;

  // Returns the function that contains an address; null if there is none.
  const Function* at(std::uint64_t address) const;
  // Converts an offset in the file to the address at which it is loaded; empty if it is not loaded.
  std::optional<std::uint64_t> address_of(std::uint64_t offset) const;
  // Reads `count` bytes of the file at an offset; returns fewer bytes at the end of the file.
  std::vector<std::uint8_t> bytes(std::uint64_t offset, std::size_t count) const;

 private:
  // A part of the file that is loaded.
  struct Segment {
    std::uint64_t offset = 0, size = 0, address = 0;
  };

  template <class T>
  std::vector<T> table(std::uint64_t offset, std::uint64_t bytes) const;
  void read_sections(const std::vector<std::uint8_t>& header);

  int descriptor_ = -1;
  std::vector<Segment> segments_;
  std::vector<Function> functions_;  // ordered by begin
};

// Returns the name of a function for people: demangled, without its parameters and template arguments, and cut if it is
// long.
std::string readable_function(const std::string& name);

}  // namespace trainctl
