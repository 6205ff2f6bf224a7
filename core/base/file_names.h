// Compares the names of files with capitals and without them, and names copies.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace trainctl {

// The text with the letters A to Z in lower case.
std::string lower_case(std::string_view text);

// Whether the name of a file ends in one of these endings, which are in lower case (".csv"); the name may have
// capitals.
bool has_ending(std::string_view name, std::initializer_list<std::string_view> endings);

// The path of the first of these names that a folder has; "" if it has none of them. If no entry has exactly the name,
// an entry is found whose name differs only in the case of its letters.
std::string first_in_folder(const std::string& folder, const std::vector<std::string>& names);

// Returns the name of the copy that a command writes: "prices-numbers.csv" for the addition "numbers".
std::string name_of_copy(const std::string& path, const std::string& addition);

}  // namespace trainctl
