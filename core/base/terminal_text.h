// Text that reaches a terminal, where control characters would be commands: they are shown, not obeyed.
#pragma once

#include <string>
#include <string_view>

namespace trainctl {

// `text` as people can read it safely, on a terminal, in a log or through a pipe. Control characters (U+0000 to U+001F
// but for line feeds and tabs, U+007F to U+009F), separators of lines (U+2028, U+2029) and the marks that turn the
// direction of a line (U+202A to U+202E, U+2066 to U+2069) become escapes such as `\u001b`, so that a JSON document
// keeps its meaning. Bytes that are not UTF-8 become `\xe9`. All other text stays as it is.
std::string terminal_text(std::string_view text);

// The same for a name or value that stands within a line: line feeds and tabs become escapes, too.
std::string terminal_word(std::string_view text);

}  // namespace trainctl
