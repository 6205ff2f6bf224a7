// Reads a stack through /proc and looks for return addresses.
#include "parallel/launch/watch/call_stack.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <sstream>

#include "core/base/format.h"
#include "parallel/launch/watch/elf_functions.h"

namespace trainctl {
namespace {

constexpr std::size_t most_functions = 12;
constexpr std::size_t stack_bytes = 1 << 16;  // how much of a stack is read

// A line of /proc/PID/maps.
struct MappedPart {
  std::uint64_t begin = 0, end = 0, offset = 0;
  bool executable = false;
  std::string path;
};

std::vector<MappedPart> mapped_parts(pid_t process) {
  std::ifstream file(format("/proc/{}/maps", process));
  std::vector<MappedPart> parts;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    MappedPart part;
    char dash = 0;
    std::string access, device, inode;
    words >> std::hex >> part.begin >> dash >> part.end >> access >> part.offset >> device >> inode >> std::ws;
    if (!std::getline(words, part.path)) part.path.clear();
    part.executable = access.size() > 2 && access[2] == 'x';
    if (part.end > part.begin) parts.push_back(std::move(part));
  }
  return parts;
}

const MappedPart* part_at(const std::vector<MappedPart>& parts, std::uint64_t address) {
  const auto found = std::find_if(parts.begin(), parts.end(),
                                  [&](const MappedPart& part) { return address >= part.begin && address < part.end; });
  return found == parts.end() ? nullptr : &*found;
}

std::vector<std::uint64_t> stack_words(pid_t process, const std::vector<MappedPart>& parts, std::uint64_t from) {
  const MappedPart* part = part_at(parts, from);
  if (part == nullptr) return {};
  std::vector<std::uint64_t> words(std::min<std::uint64_t>(stack_bytes, part->end - from) / sizeof(std::uint64_t));
  const int memory = open(format("/proc/{}/mem", process).c_str(), O_RDONLY | O_CLOEXEC);
  if (memory < 0) return {};
  const ssize_t got = pread(memory, words.data(), words.size() * sizeof(std::uint64_t), static_cast<off_t>(from));
  close(memory);
  words.resize(got > 0 ? static_cast<std::size_t>(got) / sizeof(std::uint64_t) : 0);
  return words;
}

// The place of an address of a process in the file that is mapped there.
struct CodePlace {
  const ElfFunctions* file = nullptr;
  const ElfFunctions::Function* function = nullptr;
  std::uint64_t offset = 0;   // in the file
  std::uint64_t address = 0;  // in the file's address space
};

enum class Call { none, direct, indirect };

// Returns which call instruction ends right before a place, and the address that a direct call calls.
Call call_before(const CodePlace& place, std::uint64_t& target) {
#if defined(__x86_64__)
  constexpr std::size_t longest = 7;
  if (place.file == nullptr || place.offset < longest) return Call::none;
  const std::vector<std::uint8_t> code = place.file->bytes(place.offset - longest, longest);
  if (code.size() != longest) return Call::none;
  if (code[2] == 0xe8) {
    std::int32_t distance = 0;
    std::memcpy(&distance, &code[3], sizeof distance);
    target = place.address + static_cast<std::uint64_t>(static_cast<std::int64_t>(distance));
    return Call::direct;
  }
  // Opcode ff with 2 in the middle bits of the next byte: call through a register or memory, of 2 to 7 bytes.
  for (const std::size_t length : {2, 3, 4, 6, 7}) {
    const std::size_t at = longest - length;
    if (code[at] == 0xff && (code[at + 1] >> 3 & 7) == 2) return Call::indirect;
  }
#else
  (void)place;
  (void)target;
#endif
  return Call::none;
}

#if defined(__x86_64__)
// Stops a thread and reads its registers. The calling process then ends, which resumes the thread, also if it has not
// stopped yet.
std::optional<StackRegisters> traced_registers(pid_t thread) {
  if (ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0) return {};
  if (ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) != 0) return {};
  int status = 0;
  user_regs_struct registers{};
  if (waitpid(thread, &status, __WALL) != thread) return {};
  if (ptrace(PTRACE_GETREGS, thread, nullptr, &registers) != 0) return {};
  return StackRegisters{registers.rsp, registers.rip};
}
#endif

}  // namespace

std::optional<StackRegisters> registers_of_running(pid_t thread) {
#if defined(__x86_64__)
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    const std::optional<StackRegisters> found = traced_registers(thread);
    _exit(found && write(ends[1], &*found, sizeof *found) == sizeof *found ? 0 : 1);
  }
  close(ends[1]);
  constexpr int longest = 200;  // milliseconds
  StackRegisters registers;
  pollfd answer{ends[0], POLLIN, 0};
  const bool answered =
      child > 0 && poll(&answer, 1, longest) == 1 && read(ends[0], &registers, sizeof registers) == sizeof registers;
  close(ends[0]);
  if (child > 0) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  return answered ? std::optional(registers) : std::nullopt;
#else
  (void)thread;
  return {};
#endif
}

CallStacks::CallStacks() = default;
CallStacks::~CallStacks() = default;

const ElfFunctions& CallStacks::functions_of(pid_t process, const std::string& path) {
  std::unique_ptr<ElfFunctions>& file = files_[path];
  if (!file) file = std::make_unique<ElfFunctions>(format("/proc/{}/root{}", process, path));
  return *file;
}

std::vector<std::string> CallStacks::of(pid_t process, const StackRegisters& registers) {
  const std::vector<MappedPart> parts = mapped_parts(process);
  const auto place_of = [&](std::uint64_t address) {
    CodePlace place;
    const MappedPart* part = part_at(parts, address);
    if (part == nullptr || !part->executable || !part->path.starts_with('/')) return place;
    place.file = &functions_of(process, part->path);
    place.offset = address - part->begin + part->offset;
    place.address = place.file->address_of(place.offset).value_or(0);
    place.function = place.file->at(place.address);
    return place;
  };
  const auto name_of = [&](std::uint64_t address, const CodePlace& place) -> std::string {
    if (place.function != nullptr) return readable_function(place.function->name);
    const MappedPart* part = part_at(parts, address);
    if (part == nullptr || part->path.empty()) return format("{:#x}", address);
    return format("{}+{:#x}", part->path.substr(part->path.rfind('/') + 1), address - part->begin + part->offset);
  };
  std::vector<std::string> names;
  CodePlace inner = place_of(registers.code);
  names.push_back(name_of(registers.code, inner));
  const std::vector<std::uint64_t> words = stack_words(process, parts, registers.stack);
  std::size_t next = 0;
  while (names.size() < most_functions) {
    constexpr std::size_t nearby = 1024;  // words; a caller whose frame is larger may be missed
    std::optional<std::size_t> indirect, exact;
    for (std::size_t i = next; i < std::min(words.size(), next + nearby) && !exact; ++i) {
      const CodePlace place = place_of(words[i]);
      std::uint64_t target = 0;
      const Call call = call_before(place, target);
      if (call == Call::none || place.function == nullptr) continue;
      const bool same_file = place.file == inner.file;
      if (call == Call::direct && same_file && inner.function != nullptr && target == inner.function->begin) exact = i;
      // Calls of exported functions go through a table of the linker, which has no symbols.
      const bool through_table = call == Call::direct && place.file->at(target) == nullptr;
      if (!indirect && (call == Call::indirect || through_table || inner.function == nullptr)) indirect = i;
    }
    const std::optional<std::size_t> found = exact ? exact : indirect;
    if (!found) break;
    inner = place_of(words[*found]);
    names.push_back(name_of(words[*found], inner));
    next = *found + 1;
    if (inner.function->name == "main" || inner.function->name == "start_thread") break;  // the first frames
  }
  return names;
}

}  // namespace trainctl
