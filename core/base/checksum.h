// Small text files that are kept between runs: a line with a checksum, which reveals damage, and then the content.
#pragma once

#include <string>
#include <string_view>

namespace trainctl {

// Returns the line "trainctl KIND 1 CHECKSUM" followed by `lines`. `kind` names the content, for example "kernel
// choices".
std::string with_checksum(std::string_view kind, std::string_view lines);

// Returns the lines after the first line of a text that with_checksum() wrote. Throws Error{data} if the first line
// does not hold this kind and the checksum of the other lines.
std::string_view checked_lines(std::string_view kind, std::string_view text);

}  // namespace trainctl
