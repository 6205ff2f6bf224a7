// YAML files as documents: places, variables, includes, settings of the command line; and documents as YAML text.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/document.h"
#include "core/spec/reader.h"
#include "io/yaml/config_files.h"

namespace trainctl {

// Looks up the value of `${NAME}`; nothing where it is not defined.
using VariableLookup = std::function<std::optional<std::string>(const std::string& name)>;

// The variables of the environment.
VariableLookup environment();

// The document of a text; `file` is for places only, `base_directory` for relative paths in it. Reported are syntax
// errors, text that is not UTF-8, and what exceeds the reader's limits (values and texts of aliases are counted where
// they stand); the result is then null.
Node parse_yaml(const std::string& text, const std::string& file, const std::string& base_directory, Reader& reader);

// A value that this program has written as YAML, such as a key's default: what is no YAML comes back as null.
Node parse_value(const std::string& text);

// The document of a file: variables replaced and includes merged. A map's `include: FILE` adds the keys of FILE's map;
// the including map wins. Everything wrong is reported, a file that cannot be read too. Included files are regular
// files; the file itself may be a pipe. Texts that `files` has are taken from there, others are added to it.
Node load_yaml(const std::string& file, const VariableLookup& variables, Reader& reader, ConfigFiles& files);
Node load_yaml(const std::string& file, const VariableLookup& variables, Reader& reader);

// Replaces `${NAME}` and `${NAME:-default}` in all scalars ("$${" is a literal "${"). Relative paths in values that
// begin with a variable are relative to `directory`, "" for the working directory.
void expand_variables(Node& node, const VariableLookup& variables, Reader& reader, const std::string& directory = "");

// Applies `--set PATH=VALUE`, VALUE being YAML: "train.optimizer.learning_rate=0.1", "model.layers.0.dense.units=5".
// A bare choice on the way becomes a map: `optimizer: adam` becomes `optimizer: {name: adam, learning_rate: 0.1}`.
// Relative paths are relative to `directory`, "" for the working directory.
void apply_setting(Node& document, const std::string& setting, const VariableLookup& variables, Reader& reader,
                   const std::string& directory = "");

// Block YAML that parses and expands to an equal document.
std::string to_yaml(const Node& document);

}  // namespace trainctl
