// Fuzz targets of data: CSV files, headers of NumPy arrays, and the sums of a client's evaluation.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "core/check.h"
#include "learn/arrays/npy.h"
#include "learn/arrays/safetensors_array.h"
#include "learn/evaluation/sums.h"
#include "learn/images/image_file.h"
#include "learn/statistics/federated_statistics.h"
#include "learn/tables/csv_reader.h"
#include "learn/tables/json_lines.h"
#include "learn/tables/table_source.h"
#include "tests/fuzz/targets/memory_file.h"

namespace fedge::fuzz {

// The rows of a file; false if it is refused.
inline bool read_rows(const std::filesystem::path& path, std::vector<std::vector<std::string>>& rows) {
  auto reader = learn::CsvReader::open(path);
  FEDGE_CHECK(reader.has_value(), reader ? "" : reader.error().message);
  while (true) {
    const auto more = reader->next();
    if (!more) FEDGE_CHECK(!more.error().message.empty() && more.error().message.size() < 10'000, "an error");
    if (!more || !*more) return more.has_value();
    rows.emplace_back();
    for (const std::string_view field : reader->fields()) rows.back().emplace_back(field);
  }
}

// The rows, written with every field quoted, are the same rows again. A table of them is finite numbers.
inline void feed_csv(std::span<const std::byte> bytes) {
  if (bytes.size() >= 2 && bytes[0] == std::byte{0x1F} && bytes[1] == std::byte{0x8B}) return;  // a gzip file
  const MemoryFile file(bytes);
  std::vector<std::vector<std::string>> rows;
  if (read_rows(file.path(), rows)) {
    std::string text;
    for (const auto& row : rows) {
      for (std::size_t i = 0; i < row.size(); ++i) {
        text += i > 0 ? ",\"" : "\"";
        for (const char c : row[i]) text += c == '"' ? std::string("\"\"") : std::string(1, c);
        text += '"';
      }
      text += '\n';
    }
    const MemoryFile written(std::as_bytes(std::span(text)));
    std::vector<std::vector<std::string>> again;
    FEDGE_CHECK(read_rows(written.path(), again), "what was written is refused");
    FEDGE_CHECK(again == rows, "the rows change");
  }
  learn::TableSchema schema;
  schema.numeric = {"a", "b"};
  schema.missing_flags = true;
  schema.categorical = {{"c", {"x", "1", "2.0"}}};
  schema.targets = {"y"};
  schema.classes = {{"0"}, {"1", "yes"}};
  const std::vector<std::filesystem::path> files = {file.path()};
  const auto table = learn::read_table(schema, files);
  if (!table) {
    FEDGE_CHECK(table.error().message.size() < 10'000, "an error repeats the whole input");
    return;
  }
  FEDGE_CHECK(table->floats.size() == table->size() * schema.features(), "a feature for each place");
  for (const float value : table->floats.span()) FEDGE_CHECK(std::isfinite(value), "a feature is finite");
  for (const learn::Label label : table->labels) FEDGE_CHECK(label < 2, "a label of a class");
}

// A header that is accepted describes at most 2^48 elements, and its elements convert to numbers. Returns
// whether it is.
inline bool accept_npy(std::span<const std::byte> bytes) {
  const auto offset = learn::npy_data_offset(bytes, "f");
  FEDGE_CHECK(offset || offset.error().message.size() < 200, "an error repeats the whole input");
  if (!offset) return false;
  const auto start = bytes.first(std::min(*offset, bytes.size()));
  const auto header = learn::parse_npy_header(start, "f");
  FEDGE_CHECK(header || header.error().message.size() < 300, "an error repeats the whole input");
  if (!header) return false;
  FEDGE_CHECK(start.size() == *offset, "a header that is cut short is refused");
  std::uint64_t elements = 1;
  for (const std::size_t size : header->shape) elements *= size;
  FEDGE_CHECK(header->elements == elements && elements <= std::uint64_t{1} << 48, "the number of elements");
  const auto data = bytes.subspan(start.size());
  std::vector<double> values(data.size() / learn::bytes_of(header->type));
  learn::to_doubles(header->type, data, values);
  if (learn::is_integer(header->type))
    for (const double value : values) FEDGE_CHECK(value == std::floor(value), "an integer");
  return true;
}
// An image that is decoded has the size that was known before. Small ones are also scaled.
inline void feed_image(std::span<const std::byte> bytes) {
  const auto size = learn::image_size(bytes, "f");
  FEDGE_CHECK(size || size.error().message.size() < 500, "an error repeats the whole input");
  constexpr std::size_t kDecoded = 1 << 16;
  if (size && size->height > kDecoded / size->width) return;
  for (const std::size_t channels : {1U, 3U}) {
    const auto image = learn::decode_image(bytes, "f", channels);
    FEDGE_CHECK(size || !image, "an image without a size");
    if (!image) continue;
    FEDGE_CHECK(image->height == size->height && image->width == size->width, "the size changes");
    FEDGE_CHECK(image->pixels.size() == size->height * size->width * channels, "a value for each channel");
    FEDGE_CHECK(learn::resized(*image, 3, 7).pixels.size() == 21 * channels, "the new size");
  }
}

// Sums that are accepted give statistics whose numbers are finite and in order. Returns whether they are.
inline bool accept_statistics(std::span<const std::byte> bytes) {
  learn::DatasetInfo info{.shape = {1, 1, 1}, .classes = 2, .outputs = 2, .class_names = {}};
  info.columns = {.period = 1, .at = {0}, .names = {"x"}};
  auto statistics = learn::FederatedStatistics::create(info);
  FEDGE_CHECK(statistics, "statistics of a column");
  std::vector<std::int64_t> sums(bytes.size() / sizeof(std::int64_t));
  if (!sums.empty()) std::memcpy(sums.data(), bytes.data(), sums.size() * sizeof(std::int64_t));
  if (!learn::check_counts(statistics->shape(), sums, 1000)) return false;
  while (!statistics->complete()) statistics->take(sums);
  for (const learn::ColumnStatistics& column : statistics->result().columns) {
    FEDGE_CHECK(std::isfinite(column.mean) && std::isfinite(column.deviation), "a mean that is finite");
    if (column.count == 0) continue;
    FEDGE_CHECK(column.minimum->value <= column.median->value + column.median->error,
                "the order of quantiles");
    FEDGE_CHECK(column.median->value - column.median->error <= column.maximum->value,
                "the order of quantiles");
  }
  const learn::Normalisation by = statistics->normalisation();
  for (const float deviation : by.deviation) FEDGE_CHECK(deviation > 0, "a deviation above 0");
  return true;
}
inline void feed_statistics(std::span<const std::byte> bytes) { accept_statistics(bytes); }

// Rows that are read have a field for each column.
inline void feed_json_lines(std::span<const std::byte> bytes) {
  const MemoryFile file(bytes);
  auto reader = learn::JsonLines::open(file.path(), {"a", "b"});
  FEDGE_CHECK(reader.has_value(), "a file in memory");
  while (true) {
    const auto more = reader->next();
    if (!more) FEDGE_CHECK(more.error().message.size() < 1000, "an error repeats the whole input");
    if (!more || !*more) return;
    FEDGE_CHECK(reader->fields().size() == 2, "a field for each column");
  }
}

// An array that is found lies in the file.
inline void feed_safetensors_array(std::span<const std::byte> bytes) {
  const MemoryFile written(bytes);
  const auto file = ReadOnlyFile::open(written.path());
  FEDGE_CHECK(file.has_value(), "a file in memory");
  const auto found = learn::find_safetensors_array(*file, "x");
  FEDGE_CHECK(found || found.error().message.size() < 2000, "an error repeats the whole input");
  if (!found) return;
  std::uint64_t elements = 1;
  for (const std::size_t size : found->header.shape) elements *= size;
  FEDGE_CHECK(found->header.elements == elements, "the number of elements");
  FEDGE_CHECK(found->offset + elements * learn::bytes_of(found->header.type) <= bytes.size(),
              "inside the file");
}

inline void feed_npy(std::span<const std::byte> bytes) { accept_npy(bytes); }

// Sums that are accepted have metrics within their bounds, alone and doubled. Returns whether these are.
inline bool accept_evaluation(std::span<const std::byte> bytes) {
  if (bytes.empty()) return false;
  using Shape = learn::EvaluationSums::Shape;
  const auto kind = static_cast<unsigned>(bytes[0]) % 7;
  const Shape shape = kind == 0   ? Shape{.outputs = 2}
                      : kind == 1 ? Shape{.outputs = 3}
                      : kind == 2 ? Shape{.outputs = 33}
                      : kind == 4 ? Shape{.outputs = 2, .kind = learn::TargetKind::kLabels}
                      : kind == 5 ? Shape{.outputs = 3, .tokens = 4, .kind = learn::TargetKind::kPoints}
                      : kind == 6 ? Shape{.outputs = 2, .kind = learn::TargetKind::kValues}
                                  : Shape{.text = true, .outputs = 5, .tokens = 7};
  // Pairs of a position and a small number, or of a position and any number.
  std::vector<std::int64_t> values(shape.size(), 0);
  for (std::size_t at = 1; at + 3 <= bytes.size();) {
    std::size_t place = static_cast<std::size_t>(bytes[at]) * 256 + static_cast<std::size_t>(bytes[at + 1]);
    place %= values.size();
    const auto number = static_cast<std::int8_t>(bytes[at + 2]);
    at += 3;
    values[place] = number;
    if (number != -1 || at + 8 > bytes.size()) continue;
    std::memcpy(&values[place], bytes.data() + at, 8);
    at += 8;
  }
  auto sums = learn::EvaluationSums::from(shape, values);
  if (!sums) FEDGE_CHECK(!sums.error().message.empty(), "an error says what is wrong");
  if (!sums) return false;
  for (int i = 0; i < 2; ++i) {
    const learn::EvaluationMetrics metrics = sums->metrics();
    const auto within = [](double value, double most) { return value >= 0 && value <= most * (1 + 1e-9); };
    FEDGE_CHECK((within(metrics.accuracy, 1) || kind == 6) && within(metrics.loss, 1024),
                "accuracy and loss");
    FEDGE_CHECK(within(metrics.mean_iou.value_or(0), 1) && within(metrics.mae.value_or(0), 1024) &&
                    within(metrics.rmse.value_or(0), 1024) && metrics.r2.value_or(0) <= 1 + 1e-9,
                "IoU and errors");
    FEDGE_CHECK(within(metrics.macro_f1.value_or(0), 1) && within(metrics.auroc.value_or(0), 1),
                "F1 and AUROC");
    FEDGE_CHECK(within(metrics.auroc_error, 0.5), "the AUROC's error");
    FEDGE_CHECK(within(metrics.calibration_error.value_or(0), 2), "calibration");
    const learn::EvaluationSums same = *sums;
    *sums += same;
  }
  return true;
}

inline void feed_evaluation(std::span<const std::byte> bytes) { (void)accept_evaluation(bytes); }

}  // namespace fedge::fuzz
