// Writes a file of events that TensorBoard reads.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/metrics/histogram.h"
#include "io/metrics/record_file.h"
#include "io/pictures/picture.h"
#include "io/protobuf/message.h"

namespace trainctl {

class EventFile {
 public:
  // Creates the folder and a new file in it; throws Error{resource} if this fails. TensorBoard then ignores events of
  // later steps than `first_step` in earlier files. Later failures are logged: see RecordFile.
  EventFile(const std::string& folder, std::int64_t first_step);

  // Adds one value to each of these curves.
  void scalars(std::int64_t step, const std::map<std::string, double>& values);
  // Adds the bytes of a tensorflow.GraphDef.
  void graph(std::int64_t step, const std::string& bytes);
  // Adds a text in Markdown.
  void text(std::int64_t step, const std::string& name, const std::string& markdown);
  void histogram(std::int64_t step, const std::string& name, const Histogram& values);
  void picture(std::int64_t step, const std::string& name, const Picture& picture);
  // Called after the last event.
  void finish() { file_.finish(); }

 private:
  // Writes a summary of one tensor of strings, a scalar or a vector, for a plugin of TensorBoard.
  void strings(std::int64_t step, const std::string& name, const std::string& plugin, int data_class,
               const std::vector<std::string>& values, bool is_scalar);
  // Writes a tensorflow.Event with the step, the time and these fields as a record of a TFRecord file.
  void write(std::int64_t step, const ProtobufMessage& fields);

  RecordFile file_;
};

}  // namespace trainctl
