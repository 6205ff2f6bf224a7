// Writes and reads the note. It has the path of the copies, and then the text of their lock file.
#include "parallel/launch/watch/copies_note.h"

#include <fstream>
#include <iterator>

#include "core/base/format.h"
#include "core/base/memory_folder.h"
#include "core/base/own_folder.h"
#include "parallel/launch/hosts.h"
#include "parallel/launch/variables.h"

namespace trainctl {
namespace {

std::string note_of_host(const std::string& flight_folder) {
  return format("{}/copies-{}", flight_folder, this_host());
}

// Returns the text of a file; "" if it cannot be read.
std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

void note_copies(const std::string& copies) {
  const std::string folder = Variables::of_process().text(flight_variable);
  if (folder.empty()) return;
  std::ofstream(note_of_host(folder), std::ios::binary) << copies << "\n" << text_of(copies + "/lock");
}

void remove_noted_copies(const std::string& flight_folder) {
  const std::string note = text_of(note_of_host(flight_folder));
  const std::size_t end = note.find('\n');
  if (end == std::string::npos) return;
  const std::string copies = note.substr(0, end);
  if (is_own_folder(copies) && text_of(copies + "/lock") == note.substr(end + 1)) remove_memory_folder(copies);
}

}  // namespace trainctl
