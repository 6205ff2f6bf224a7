// Makes text safe to show on a terminal: control characters, which a terminal would obey, become visible escapes.
#pragma once

#include <string>
#include <string_view>

namespace trainctl {

// Escapes a text so that it is safe to show on a terminal, in a log or through a pipe. Control characters (U+0000 to
// U+001F except line feeds and tabs, U+007F to U+009F), line separators (U+2028, U+2029) and bidirectional controls
// (U+202A to U+202E, U+2066 to U+2069) become escapes such as `\u001b`, which keep the meaning of a JSON document.
// Bytes that are not UTF-8 become `\xe9`. All other text stays as it is.
std::string terminal_text(std::string_view text);

// As terminal_text(), for a name or value within a line: line feeds and tabs become escapes, too.
std::string terminal_word(std::string_view text);

}  // namespace trainctl
