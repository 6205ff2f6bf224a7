// Text of another process, of which no more is kept than a reader needs.
#pragma once

#include <string>
#include <string_view>

namespace trainctl {

// The bytes that are kept of what a remote shell or a child process says.
inline constexpr std::size_t most_remote_text = 1 << 20;

// Appends `more` to `text`. Of a text that becomes longer than `most` bytes the first half of them stays, and the last:
// an answer begins with what was asked for, and a failure ends with its reason.
inline void append_within(std::string& text, std::string_view more, std::size_t most) {
  text.append(more);
  if (text.size() > most) text.erase(most / 2, text.size() - most);
}

}  // namespace trainctl
