// KernelChoices: look-up and text form.
#include "core/backend/choices.h"

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/hash.h"

namespace trainctl {
namespace {

std::string head_of(std::string_view lines) {
  return format("trainctl kernel choices 1 {:016x}\n", xxh3(lines.data(), lines.size()));
}

}  // namespace

std::optional<std::string> KernelChoices::find(std::string_view key) {
  const auto entry = choices_.find(key);
  if (entry == choices_.end()) return std::nullopt;
  used_.insert(entry->first);
  return entry->second;
}

void KernelChoices::record(const std::string& key, const std::string& implementation) {
  choices_[key] = implementation;
  used_.insert(key);
}

KernelChoices KernelChoices::used() const {
  KernelChoices used;
  for (const std::string& key : used_) used.record(key, choices_.at(key));
  return used;
}

std::string KernelChoices::text() const {
  std::string lines;
  for (const auto& [key, implementation] : choices_) lines += key + '\t' + implementation + '\n';
  return lines;
}

void KernelChoices::add(std::string_view text) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.empty()) continue;
    const std::size_t tab = line.find('\t');
    if (tab == std::string_view::npos || tab == 0 || tab + 1 == line.size()) {
      throw Error(ErrorKind::data, format("kernel choices: cannot read the line '{}'", line),
                  "delete the record of kernel choices; they will be measured again");
    }
    choices_[std::string(line.substr(0, tab))] = line.substr(tab + 1);
  }
}

std::string KernelChoices::file_text() const {
  const std::string lines = text();
  return head_of(lines) + lines;
}

void KernelChoices::add_file(std::string_view text) {
  const std::size_t head = std::min(text.find('\n'), text.size() - 1) + 1;
  const std::string_view lines = text.substr(head);
  if (text.substr(0, head) != head_of(lines)) {
    throw Error(ErrorKind::data, "its first line is not the checksum of the others");
  }
  add(lines);
}

}  // namespace trainctl
