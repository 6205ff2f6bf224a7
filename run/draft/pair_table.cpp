// Finds the columns of images and targets in a table.
#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/file_names.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "io/datasets/dataset.h"
#include "io/datasets/tables/csv_lines.h"
#include "run/draft/pair_folders.h"
#include "run/draft/pair_names.h"

namespace trainctl {
namespace {

// The first lines of a table, as texts.
struct Lines {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;  // with as many fields as the header
};

Lines first_lines(const std::string& path, char delimiter) {
  constexpr std::size_t most = 100;
  CsvLines lines(path, delimiter);
  std::vector<std::string_view> fields;
  Lines found;
  if (!lines.next(fields)) return found;
  found.header.assign(fields.begin(), fields.end());
  while (found.rows.size() < most && lines.next(fields)) {
    if (fields.size() == found.header.size()) found.rows.emplace_back(fields.begin(), fields.end());
  }
  return found;
}

// Whether a column only numbers or names the rows.
bool is_id(const Lines& lines, std::size_t column) {
  static const std::vector<std::string> names{"",   "id", "ids",  "index", "idx",       "number",
                                              "no", "nr", "name", "key",   "unnamed: 0"};
  if (std::ranges::find(names, lower_case(lines.header[column])) != names.end()) return true;
  if (lines.rows.size() < 2) return false;
  for (std::size_t i = 0; i < lines.rows.size(); ++i) {
    const std::string number = std::to_string(i), next = std::to_string(i + 1);
    const std::string& field = lines.rows[i][column];
    if (field != (lines.rows[0][column] == "0" ? number : next)) return false;
  }
  return true;
}

PairTable columns_of_images(const std::string& path, char delimiter) {
  const Lines lines = first_lines(path, delimiter);
  if (lines.rows.empty()) return {};
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::vector<std::string> images, others;
  for (std::size_t i = 0; i < lines.header.size(); ++i) {
    const std::string& field = lines.rows[0][i];
    const bool named = has_ending(field, {".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif"});
    if (named && file_type((folder / field).string()) == FileType::regular) {
      images.push_back(lines.header[i]);
    } else if (!is_id(lines, i)) {
      others.push_back(lines.header[i]);
    }
  }
  if (images.size() != 2) return {};
  if (are_in_order(images[1], images[0])) std::swap(images[0], images[1]);
  return {images[0], images[1], others, delimiter};
}

bool is_name_of_masks(const std::string& name) {
  static const std::vector<std::string> names{"mask",         "masks",         "label",      "labels",
                                              "segmentation", "segmentations", "annotation", "annotations"};
  return std::ranges::find(names, lower_case(name)) != names.end();
}

}  // namespace

PairTable pair_table(const std::string& path, TargetsAre targets, const std::string& target) {
  if (targets == TargetsAre::classes) return {};
  PairTable table;
  try {
    table = columns_of_images(path, ',');
    if (!table.found()) table = columns_of_images(path, ';');
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data) throw;
    return {};  // the reader of tables says what is wrong
  }
  if (!target.empty() && target == table.image_column) std::swap(table.image_column, table.target_column);
  return target.empty() || target == table.target_column ? table : PairTable();
}

void require_pairs(const std::string& path, const PairTable& table, TargetsAre targets) {
  const std::string columns = format("its columns '{}' and '{}' name images", table.image_column, table.target_column);
  if (table.delimiter != ',') {
    data_error(path, columns + ", but semicolons separate its fields", "separate the fields by commas");
  }
  if (targets == TargetsAre::values) return;
  if (is_name_of_masks(table.target_column)) {
    data_error(
        path, columns + ", of which the second ones may be masks",
        "segmentation_folder reads masks with a class for each pixel: put the images into a folder images and the "
        "masks, with the same names, into a folder masks beside it; if the second images are targets whose "
        "values are learned, use --targets values");
  }
  if (table.left_out.empty() || are_names_of_pairs(table.image_column, table.target_column)) return;
  data_error(path, format("{}, but {} may be the target, too", columns, left_out_text(table)),
             "no data set reads two images and a class or a value of each line; if the images of one column are the "
             "targets of those of the other, use --targets values, and the further columns are left out");
}

std::string left_out_text(const PairTable& table) {
  std::string text = table.left_out.size() == 1 ? "the column " : "the columns ";
  for (const std::string& name : table.left_out) text += (&name == &table.left_out[0] ? "'" : ", '") + name + "'";
  return text;
}

}  // namespace trainctl
