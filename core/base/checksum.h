// Lines of text behind a line with their checksum: small files that are kept between runs, whose damage is noticed.
#pragma once

#include <string>
#include <string_view>

namespace trainctl {

// The lines behind "trainctl KIND 1 CHECKSUM", `kind` saying in words what they are: "kernel choices".
std::string with_checksum(std::string_view kind, std::string_view lines);

// The lines of such a text. Throws Error{data} where its first line is not the one that belongs to the others.
std::string_view checked_lines(std::string_view kind, std::string_view text);

}  // namespace trainctl
