// The errors about texts that grow too much.
#include "io/text/pipeline/growth.h"

#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"

namespace trainctl {
namespace {

constexpr const char* other_file = "do not use a tokenizer file from an untrusted source";

}  // namespace

void throw_grown() {
  throw Error(ErrorKind::data, "the steps of the tokenizer make more than 32 bytes of each byte of a text", other_file);
}

std::string inserted(std::string text) {
  if (text.size() > max_inserted) {
    throw Error(ErrorKind::data,
                format("a step of the tokenizer inserts a text of {} bytes, but at most {} are supported", text.size(),
                       max_inserted),
                other_file);
  }
  return text;
}

}  // namespace trainctl
