// A file of events that TensorBoard reads.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/metrics/histogram.h"
#include "io/pictures/picture.h"
#include "io/protobuf/message.h"

namespace trainctl {

class EventFile {
 public:
  // Makes a file of its own in the folder, which it makes too, and begins it: where steps up to `first_step` are those
  // of files before, TensorBoard leaves out what these hold of later ones. Throws Error{resource}, now and later, where
  // the file cannot be written.
  EventFile(const std::string& folder, std::int64_t first_step);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  // Values of curves, by their names.
  void scalars(std::int64_t step, const std::map<std::string, double>& values);
  // A tensorflow.GraphDef, as bytes.
  void graph(std::int64_t step, const std::string& bytes);
  // A text in Markdown.
  void text(std::int64_t step, const std::string& name, const std::string& markdown);
  void histogram(std::int64_t step, const std::string& name, const Histogram& values);
  void picture(std::int64_t step, const std::string& name, const Picture& picture);

 private:
  // Writes a summary of one tensor of strings, of a shape, for a plugin of TensorBoard's.
  void strings(std::int64_t step, const std::string& name, const std::string& plugin, int data_class,
               const std::vector<std::string>& values, bool is_scalar);
  // Writes tensorflow.Event with these further fields, as a record of a TFRecord file.
  void write(std::int64_t step, const ProtobufMessage& fields);

  std::string path_;
  int descriptor_ = -1;
};

}  // namespace trainctl
