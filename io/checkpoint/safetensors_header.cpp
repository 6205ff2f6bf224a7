// Parses the header of a safetensors file as a stream of JSON events, and stops at the first event that does not belong
// to a header.
#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "io/checkpoint/safetensors.h"

namespace trainctl {
namespace {

std::optional<DType> dtype_of(std::string_view name) {
  if (name == "F32") return DType::float32;
  if (name == "F64") return DType::float64;
  if (name == "BF16") return DType::bfloat16;
  if (name == "F16") return DType::float16;
  if (name == "I32") return DType::int32;
  if (name == "I64") return DType::int64;
  if (name == "U8") return DType::uint8;
  return std::nullopt;
}

// Receives the events of {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, "__metadata__": {"a":
// "b"}}.
class HeaderEvents final : public Json::json_sax_t {
 public:
  SafetensorsHeader header;
  std::string problem;

  bool start_object(std::size_t) override {
    if (depth_ == 2 || list_) return fail("an unexpected object");
    if (++depth_ == 2 && !metadata_) tensor_ = {}, seen_dtype_ = false, numbers_.clear(), offsets_.clear(), seen_ = 0;
    return true;
  }
  bool end_object() override {
    if (--depth_ == 0 || metadata_) return metadata_ = false, true;
    if (seen_ != 3 || !seen_dtype_ || offsets_.size() != 2) {
      return fail(format("tensor '{}' needs dtype, shape and two data_offsets", name_));
    }
    tensor_.name = name_;
    tensor_.shape = Shape(std::exchange(numbers_, {}));
    tensor_.begin = offsets_[0];
    tensor_.end = offsets_[1];
    header.tensors.push_back(std::move(tensor_));
    return true;
  }
  bool key(string_t& text) override {
    if (depth_ == 1) {
      name_ = std::move(text);
      metadata_ = name_ == "__metadata__";
    } else {
      field_ = std::move(text);
    }
    return true;
  }
  bool string(string_t& text) override {
    if (depth_ != 2 || list_) return fail(format("an unexpected string: '{}'", text.substr(0, 40)));
    if (metadata_) return header.metadata[field_] = std::move(text), true;
    const std::optional<DType> dtype = dtype_of(text);
    if (field_ != "dtype") return fail(format("tensor '{}' has an unknown key '{}'", name_, field_));
    if (!dtype) return fail(format("tensor '{}' has dtype '{}', which is not supported", name_, text.substr(0, 40)));
    tensor_.dtype = *dtype;
    seen_dtype_ = true;
    ++seen_;
    return true;
  }
  bool start_array(std::size_t) override {
    if (depth_ != 2 || metadata_ || list_) return fail("an unexpected list");
    if (field_ == "shape") list_ = &numbers_;
    if (field_ == "data_offsets") list_ = &offsets_;
    if (!list_ || !list_->empty()) return fail(format("tensor '{}' has a wrong or repeated '{}'", name_, field_));
    return true;
  }
  bool end_array() override { return list_ = nullptr, ++seen_, true; }
  bool number_unsigned(number_unsigned_t value) override {
    if (!list_ || value > static_cast<std::uint64_t>(INT64_MAX)) return fail("an unexpected number");
    if (list_->size() == 32) return fail(format("tensor '{}' has too many dimensions", name_));
    return list_->push_back(static_cast<std::int64_t>(value)), true;
  }
  bool number_integer(number_integer_t) override { return fail("a negative number"); }
  bool number_float(number_float_t, const string_t&) override { return fail("a fraction"); }
  bool null() override { return fail("a null"); }
  bool boolean(bool) override { return fail("a boolean"); }
  bool binary(binary_t&) override { return fail("binary values"); }
  bool parse_error(std::size_t position, const std::string&, const Json::exception&) override {
    return fail(format("the header is not JSON at byte {}", position));
  }

 private:
  bool fail(std::string why) { return problem = std::move(why), false; }

  int depth_ = 0;
  bool metadata_ = false;
  std::vector<std::int64_t>* list_ = nullptr;
  std::string name_, field_;
  StoredTensor tensor_;
  bool seen_dtype_ = false;
  int seen_ = 0;
  std::vector<std::int64_t> numbers_, offsets_;
};

// Returns the number of bytes of a tensor; no value if it overflows.
std::optional<std::int64_t> byte_count(const StoredTensor& tensor) {
  std::int64_t bytes = size_of(tensor.dtype);
  for (std::int64_t size : tensor.shape.sizes()) {
    if (__builtin_mul_overflow(bytes, size, &bytes)) return std::nullopt;
  }
  return bytes;
}

std::string find_wrong_offsets(const std::vector<StoredTensor>& tensors, std::int64_t data_bytes) {
  std::int64_t position = 0;
  for (const StoredTensor& tensor : tensors) {
    if (tensor.begin != position)
      return format("tensor '{}' begins at byte {}, not {}", tensor.name, tensor.begin, position);
    if (tensor.end < tensor.begin || byte_count(tensor) != tensor.bytes()) {
      return format("tensor '{}' {} {} does not fill bytes {} to {}", tensor.name, to_string(tensor.shape),
                    name_of(tensor.dtype), tensor.begin, tensor.end);
    }
    position = tensor.end;
  }
  if (position != data_bytes) return format("the tensors need {} bytes, the file has {}", position, data_bytes);
  return {};
}

}  // namespace

const StoredTensor* SafetensorsHeader::find(std::string_view name) const {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const auto& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

SafetensorsHeader parse_safetensors_header(std::string_view text, std::int64_t data_bytes, const std::string& path) {
  HeaderEvents events;
  if (text.empty() || text[0] != '{') {
    events.problem = "the header does not begin with '{'";
  } else if (Json::sax_parse(text, &events)) {
    auto& tensors = events.header.tensors;
    std::vector<std::string_view> names;
    for (const StoredTensor& tensor : tensors) names.push_back(tensor.name);
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end()) events.problem = format("tensor '{}' appears twice", *twice);
    std::stable_sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
      return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    if (events.problem.empty()) events.problem = find_wrong_offsets(tensors, data_bytes);
  }
  if (!events.problem.empty()) {
    throw Error(ErrorKind::data, SourceLocation{path}, "not a valid safetensors file: " + events.problem);
  }
  return std::move(events.header);
}

}  // namespace trainctl
