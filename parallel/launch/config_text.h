// Configs that are no regular file (a pipe, /dev/stdin): the first process reads them, and its ranks get the text.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace trainctl {

// The text of a config that is no regular file: what this process was given by the one that started it, or what `read`
// reads now. Nothing for a regular file, and for one that is not there. Throws Error{config} in a rank of a user's own
// launcher, whose ranks cannot share it.
std::optional<std::string> find_config_text(const std::string& config,
                                            const std::function<std::string(const std::string&)>& read);

// Gives the text to all processes that this one starts, and to itself where it starts again. Throws Error{config} where
// it is too large for that.
void pass_config_text(const std::string& config, const std::string& text);

}  // namespace trainctl
