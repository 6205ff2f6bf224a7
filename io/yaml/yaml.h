// Loads YAML files as documents, with locations, variables, includes and settings of the command line, and writes
// documents as YAML text.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/document.h"
#include "core/spec/reader.h"
#include "io/yaml/config_files.h"

namespace trainctl {

// Returns the value of `${NAME}`; no value if it is not defined.
using VariableLookup = std::function<std::optional<std::string>(const std::string& name)>;

// Returns the lookup in the environment variables of this process.
VariableLookup environment();

// Parses a text. `file` is used for locations only, `base_directory` for relative paths in the text. Reports syntax
// errors, text that is not UTF-8, and documents that exceed the reader's limits (the value of an alias counts for each
// use), and then returns a null node.
Node parse_yaml(const std::string& text, const std::string& file, const std::string& base_directory, Reader& reader);

// Parses a value that this program has written as YAML, such as a key's default; a text that is not YAML becomes a null
// node.
Node parse_value(const std::string& text);

// Loads a file, replaces variables and merges includes. `include: FILE` in a map adds the keys of FILE's map that the
// including map does not have. All errors are reported, including files that cannot be read. Included files must be
// regular files; the file itself may be a pipe. Texts that are in `files` are used; other files are read, and their
// texts are added to `files`.
Node load_yaml(const std::string& file, const VariableLookup& variables, Reader& reader, ConfigFiles& files);
Node load_yaml(const std::string& file, const VariableLookup& variables, Reader& reader);

// Replaces `${NAME}` and `${NAME:-default}` in all scalars ("$${" is a literal "${"). Relative paths in values that
// begin with a variable are relative to `directory`; "" means the working directory.
void expand_variables(Node& node, const VariableLookup& variables, Reader& reader, const std::string& directory = "");

// Applies `--set PATH=VALUE`, where VALUE is YAML: "train.optimizer.learning_rate=0.1", "model.layers.0.dense.units=5".
// A bare choice on the path becomes a map: `optimizer: adam` becomes `optimizer: {name: adam, learning_rate: 0.1}`.
// Relative paths are relative to `directory`; "" means the working directory.
void apply_setting(Node& document, const std::string& setting, const VariableLookup& variables, Reader& reader,
                   const std::string& directory = "");

// Returns block YAML that parses and expands to an equal document.
std::string to_yaml(const Node& document);

}  // namespace trainctl
