// Tables as data sets: one sample for each row, or for each window of rows, of a CSV file or a file of JSON
// lines, or of all such files of a directory in the order of their names (learn/tables/table_schema.h). Its
// path is the device's choice (DataSpec::directory).
#pragma once

#include <filesystem>
#include <memory>

#include "core/config/reader.h"
#include "core/result.h"
#include "learn/data/dataset.h"
#include "learn/tables/table_schema.h"

namespace fedge::learn {

// Reads these files' rows. Every CSV file must have a header with the schema's columns; other columns are
// ignored. kInvalid names file, line and column: a missing or repeated column, a row of another length than
// the header, a field that is no number, no known category or no known class, a missing target. kNotFound and
// kCorrupt name the file. Memory: 4 bytes for each feature of each row, three times that while reading.
Result<Dataset> read_table(const TableSchema& schema, std::span<const std::filesystem::path> files);

std::shared_ptr<const DataSource> read_csv_source(config::Reader& section);
std::shared_ptr<const DataSource> read_json_source(config::Reader& section);

}  // namespace fedge::learn
