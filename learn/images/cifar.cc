#include "learn/images/cifar.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/platform/files.h"
#include "learn/data/files/data_files.h"
#include "learn/data/files/split.h"
#include "learn/images/image_source.h"

namespace fedge::learn {
namespace {

constexpr std::size_t kSide = 32;
constexpr std::size_t kPlane = kSide * kSide;
constexpr std::size_t kColours = 3;
const std::vector<std::string> kLabelNames = {"fine", "coarse"};
const std::vector<std::string> kCifarClasses = {"airplane", "automobile", "bird",  "cat",  "deer",
                                                "dog",      "frog",       "horse", "ship", "truck"};

struct CifarSchema {
  std::size_t classes = 10;
  std::size_t label_bytes = 1;
  std::size_t label = 0;  // which of them
  std::vector<std::string> names{};
  Normalisation by{};

  std::size_t record() const { return label_bytes + kColours * kPlane; }
};

Result<void> add_records(const CifarSchema& schema, const std::filesystem::path& path, Dataset& data) {
  FEDGE_TRY(file, ReadOnlyFile::open(path));
  const std::string name = path.string();
  if (file.size() == 0 || file.size() % schema.record() != 0)
    return invalid(name + " has " + std::to_string(file.size()) + " bytes, expected a multiple of " +
                   std::to_string(schema.record()) + ", the size of a record");
  const std::size_t records = file.size() / schema.record();
  if (records > (kMaxValues - data.packed.bytes.size()) / (kColours * kPlane))
    return invalid(name + ": the samples have more than " + std::to_string(kMaxValues) +
                   " features together, which is not supported");
  std::vector<std::byte> record(schema.record());
  for (std::size_t r = 0; r < records; ++r) {
    FEDGE_TRY_VOID(file.read(r * record.size(), record));
    const auto label = std::to_integer<std::size_t>(record[schema.label]);
    if (label >= schema.classes)
      return invalid(name + ": the label of record " + std::to_string(r) + " is " + std::to_string(label) +
                     ", expected 0 to " + std::to_string(schema.classes - 1));
    data.labels.push_back(static_cast<Label>(label));
    for (std::size_t pixel = 0; pixel < kPlane; ++pixel)
      for (std::size_t colour = 0; colour < kColours; ++colour)
        data.packed.bytes.push_back(
            std::to_integer<std::uint8_t>(record[schema.label_bytes + colour * kPlane + pixel]));
  }
  return {};
}

class CifarSource final : public DataSource {
 public:
  explicit CifarSource(CifarSchema schema) : schema_(std::move(schema)) {}

  Result<DatasetInfo> describe(const DataSpec&) const override {
    return DatasetInfo{{kSide, kSide, kColours}, schema_.classes, schema_.classes, schema_.names, columns()};
  }
  Result<Dataset> load(const DataSpec& spec, Split split) const override {
    FEDGE_TRY_VOID(check_place(spec));
    if (spec.split.kind != SplitKind::kFile)
      return load_split(spec, split, kEndings,
                        [&](std::span<const std::filesystem::path> files) { return read(files); });
    FEDGE_TRY(files, files_at(spec.directory, kEndings));
    std::erase_if(files, [&](const std::filesystem::path& file) {
      return file.filename().string().starts_with("test") != (split == Split::kTest);
    });
    return read(files);
  }

 private:
  static constexpr std::array<std::string_view, 1> kEndings = {".bin"};
  static FeatureColumns columns() { return colour_columns(kColours); }
  Result<Dataset> read(std::span<const std::filesystem::path> files) const {
    Dataset data{.shape = {kSide, kSide, kColours}, .classes = schema_.classes, .floats = {}, .labels = {}};
    data.class_names = schema_.names;
    data.columns = columns();
    data.normalisation = schema_.by;
    std::iota(data.packed.value.begin(), data.packed.value.end(), 0.0F);
    for (const std::filesystem::path& file : files) FEDGE_TRY_VOID(add_records(schema_, file, data));
    return data;
  }
  CifarSchema schema_;
};

}  // namespace

std::shared_ptr<const DataSource> read_cifar_10(config::Reader& section) {
  return std::make_shared<CifarSource>(
      CifarSchema{.names = kCifarClasses, .by = read_colour_normalisation(section, kColours)});
}

std::shared_ptr<const DataSource> read_cifar_100(config::Reader& section) {
  CifarSchema schema{.classes = 100, .label_bytes = 2, .label = 1};
  schema.by = read_colour_normalisation(section, kColours);
  if (section.choice("labels", kLabelNames, 0, "Which of the two labels of an image is learnt.") == 1) {
    schema.classes = 20;
    schema.label = 0;
  }
  return std::make_shared<CifarSource>(std::move(schema));
}

}  // namespace fedge::learn
