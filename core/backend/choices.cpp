// KernelChoices: look-up and encoding as text.
#include "core/backend/choices.h"

#include "core/base/checksum.h"
#include "core/base/error.h"
#include "core/base/format.h"

namespace trainctl {
namespace {

constexpr const char* file_kind = "kernel choices";

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

std::string KernelChoices::file_text() const { return with_checksum(file_kind, text()); }

void KernelChoices::add_file(std::string_view text) { add(checked_lines(file_kind, text)); }

}  // namespace trainctl
