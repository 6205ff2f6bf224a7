// Writes events in TFRecord frames. The numbers of fields are those of TensorFlow's event.proto and summary.proto.
#include "io/metrics/tensorboard/event_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "core/base/clock.h"
#include "core/base/crc32c.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/full_disk.h"
#include "io/checkpoint/atomic_file.h"

namespace trainctl {
namespace {

namespace event {
constexpr int wall_time = 1, step = 2, file_version = 3, graph_def = 4, summary = 5, session_log = 7;
}
namespace session_log {
constexpr int status = 1, start = 1;
}
namespace summary {
constexpr int value = 1;
}
namespace value {
constexpr int tag = 1, simple_value = 2, histogram = 5, tensor = 8, metadata = 9;
}
namespace metadata {
constexpr int plugin_data = 1, data_class = 4, class_tensor = 2, class_blobs = 3;
}
namespace plugin_data {
constexpr int name = 1;
}
namespace histogram_proto {
constexpr int minimum = 1, maximum = 2, count = 3, sum = 4, sum_of_squares = 5, bucket_limit = 6, bucket = 7;
}
namespace tensor {
constexpr int dtype = 1, shape = 2, string_val = 8, type_string = 7;
}
namespace tensor_shape {
constexpr int dimension = 2, size = 1;
}

// Returns a name such as "events.out.tfevents.1764111600.host.1234.0". TensorBoard reads a folder's files in the order
// of their names.
std::string file_name(int number) {
  char host[256] = "localhost";
  gethostname(host, sizeof host - 1);
  const auto now = static_cast<std::int64_t>(wall_seconds());
  return format("events.out.tfevents.{:010}.{}.{}.{}", now, host, getpid(), number);
}

std::string record_of(const std::string& data) {
  const std::uint64_t length = data.size();
  const std::uint32_t length_crc = masked_crc32c(&length, sizeof length),
                      data_crc = masked_crc32c(data.data(), data.size());
  std::string record(sizeof length + sizeof length_crc, '\0');
  std::memcpy(record.data(), &length, sizeof length);
  std::memcpy(record.data() + sizeof length, &length_crc, sizeof length_crc);
  record += data;
  record.append(reinterpret_cast<const char*>(&data_crc), sizeof data_crc);
  return record;
}

}  // namespace

EventFile::EventFile(const std::string& folder, std::int64_t first_step) {
  create_folders(folder);
  int number = 0;
  do {
    path_ = folder + "/" + file_name(number);
    descriptor_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    if (errno == EEXIST) ++number;
  } while (descriptor_ < 0 && (errno == EINTR || errno == EEXIST));
  if (descriptor_ < 0) {
    throw Error(ErrorKind::resource, SourceLocation{path_}, "cannot write: " + std::generic_category().message(errno));
  }
  write(0, ProtobufMessage().text(event::file_version, "brain.Event:2"));
  // TensorBoard ignores events of this step and later ones in earlier files.
  write(first_step + 1, ProtobufMessage().message(event::session_log,
                                                  ProtobufMessage().integer(session_log::status, session_log::start)));
}

EventFile::~EventFile() { close(descriptor_); }

void EventFile::write(std::int64_t step, const ProtobufMessage& fields) {
  ProtobufMessage whole;
  whole.real(event::wall_time, wall_seconds()).integer(event::step, step);
  const int error = write_to_disk(descriptor_, record_of(whole.bytes() + fields.bytes()));
  if (error == 0) return;
  throw Error(ErrorKind::resource, SourceLocation{path_}, "cannot write: " + std::generic_category().message(error),
              "make room there, then run again");
}

void EventFile::scalars(std::int64_t step, const std::map<std::string, double>& values) {
  ProtobufMessage summary_values;
  for (const auto& [name, number] : values) {
    summary_values.message(
        summary::value, ProtobufMessage().text(value::tag, name).real(value::simple_value, static_cast<float>(number)));
  }
  write(step, ProtobufMessage().message(event::summary, summary_values));
}

void EventFile::graph(std::int64_t step, const std::string& bytes) {
  write(step, ProtobufMessage().text(event::graph_def, bytes));
}

void EventFile::strings(std::int64_t step, const std::string& name, const std::string& plugin, int data_class,
                        const std::vector<std::string>& values, bool is_scalar) {
  ProtobufMessage shape;
  if (!is_scalar) {
    shape.message(tensor_shape::dimension, ProtobufMessage().integer(tensor_shape::size, std::ssize(values)));
  }
  ProtobufMessage tensor_message;
  tensor_message.integer(tensor::dtype, tensor::type_string).message(tensor::shape, shape);
  for (const std::string& text : values) tensor_message.text(tensor::string_val, text);
  ProtobufMessage value_message;
  value_message.text(value::tag, name);
  value_message.message(value::metadata,
                        ProtobufMessage()
                            .message(metadata::plugin_data, ProtobufMessage().text(plugin_data::name, plugin))
                            .integer(metadata::data_class, data_class));
  value_message.message(value::tensor, tensor_message);
  write(step, ProtobufMessage().message(event::summary, ProtobufMessage().message(summary::value, value_message)));
}

void EventFile::text(std::int64_t step, const std::string& name, const std::string& markdown) {
  strings(step, name, "text", metadata::class_tensor, {markdown}, true);
}

void EventFile::picture(std::int64_t step, const std::string& name, const Picture& picture) {
  strings(step, name, "images", metadata::class_blobs,
          {std::to_string(picture.width), std::to_string(picture.height), png_file(picture)}, false);
}

// TensorBoard's buckets have no gaps: an empty bucket is added between buckets that are not adjacent, and before the
// first bucket, whose lower limit it sets.
void EventFile::histogram(std::int64_t step, const std::string& name, const Histogram& values) {
  std::vector<double> limits, counts;
  for (const Histogram::Bucket& bucket : values.filled()) {
    if (limits.empty() || limits.back() < bucket.low) {
      limits.push_back(bucket.low);
      counts.push_back(0);
    }
    limits.push_back(bucket.high);
    counts.push_back(static_cast<double>(bucket.count));
  }
  if (limits.empty()) return;
  const auto packed = [](const std::vector<double>& numbers) {
    return std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(double));
  };
  ProtobufMessage histo;
  histo.real(histogram_proto::minimum, values.minimum())
      .real(histogram_proto::maximum, values.maximum())
      .real(histogram_proto::count, static_cast<double>(values.count()))
      .real(histogram_proto::sum, values.sum())
      .real(histogram_proto::sum_of_squares, values.sum_of_squares())
      .text(histogram_proto::bucket_limit, packed(limits))
      .text(histogram_proto::bucket, packed(counts));
  const ProtobufMessage value_message = ProtobufMessage().text(value::tag, name).message(value::histogram, histo);
  write(step, ProtobufMessage().message(event::summary, ProtobufMessage().message(summary::value, value_message)));
}

}  // namespace trainctl
