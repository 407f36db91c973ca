#include "learn/data/fashion_mnist.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/platform/files.h"
#include "learn/data/idx.h"

namespace fedge::learn {
namespace {

constexpr const char* kDebianDirectory = "/usr/share/datasets/fashion-mnist";
constexpr const char* kDebianPackage = "dataset-fashion-mnist";
constexpr const char* kTrainLabels = "train-labels-idx1-ubyte";
constexpr std::size_t kMaxFileBytes = std::size_t{1} << 30;
constexpr InputShape kShape{28, 28, 1};
constexpr std::size_t kClasses = 10;
constexpr std::array<const char*, kClasses> kClassNames = {
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"};
constexpr float kMean = 0.2860F;  // mean of the training images' pixels / 255
constexpr float kPixelDeviation = 0.3530F;

struct File {
  std::string path;
  std::string bytes;
};

// Reads NAME.gz as the package installs it, or else the unpacked NAME.
Result<File> read_either(const std::filesystem::path& directory, const std::string& name) {
  const std::filesystem::path packed = directory / (name + ".gz");
  for (const auto& path : {packed, directory / name}) {
    auto bytes = read_file(path, kMaxFileBytes);
    if (bytes) return File{path.string(), std::move(bytes).value()};
    if (bytes.error().code != ErrorCode::kNotFound) return bytes.error();
  }
  return Error{ErrorCode::kNotFound, packed.string() + " does not exist: install it with \"apt-get install " +
                                         kDebianPackage +
                                         "\", or set data.directory to the directory that contains it"};
}

struct Labels {
  std::string path;
  std::vector<Label> values;
};

Result<Labels> read_labels(const std::filesystem::path& directory, const std::string& name) {
  FEDGE_TRY(file, read_either(directory, name));
  FEDGE_TRY(reader, IdxReader::open(std::as_bytes(std::span(file.bytes)), file.path, 1));
  std::vector<std::uint8_t> labels(reader.elements());
  FEDGE_TRY_VOID(reader.read(labels));
  FEDGE_TRY_VOID(reader.finish());
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < kClasses) continue;
    return Error{ErrorCode::kCorrupt, file.path + ": label " + std::to_string(labels[i]) + " of sample " +
                                          std::to_string(i) + " is out of range, expected 0 to " +
                                          std::to_string(kClasses - 1)};
  }
  return Labels{std::move(file.path), {labels.begin(), labels.end()}};
}

// (x / 255 - mean) / deviation for each byte x, computed in float32 as torchvision's ToTensor and Normalize
// do.
std::array<float, 256> normalisation() {
  std::array<float, 256> table{};
  for (std::size_t x = 0; x < table.size(); ++x)
    table[x] = (static_cast<float>(x) / 255.0F - kMean) / kPixelDeviation;
  return table;
}

// Reads the images of these samples (ascending), or all, as bytes. It always reads the file to its end, so
// that the checksum is verified.
Result<Dataset> read_images(const std::filesystem::path& directory, const std::string& name,
                            const Labels& labels, std::optional<std::span<const std::uint32_t>> wanted) {
  FEDGE_TRY(file, read_either(directory, name));
  FEDGE_TRY(reader, IdxReader::open(std::as_bytes(std::span(file.bytes)), file.path, 3));
  const auto& dimensions = reader.dimensions();
  if (dimensions[1] != kShape.height || dimensions[2] != kShape.width) {
    return Error{ErrorCode::kCorrupt, file.path + ": images are " + std::to_string(dimensions[1]) + "x" +
                                          std::to_string(dimensions[2]) + ", expected 28x28"};
  }
  if (dimensions[0] != labels.values.size()) {
    return Error{ErrorCode::kCorrupt, file.path + " contains " + std::to_string(dimensions[0]) +
                                          " images, but " + labels.path + " contains " +
                                          std::to_string(labels.values.size()) + " labels"};
  }
  const std::size_t count = wanted ? wanted->size() : dimensions[0];
  Dataset data{
      .shape = kShape, .classes = kClasses, .floats = {}, .labels = {}, .packed = {{}, normalisation()}};
  data.class_names = {kClassNames.begin(), kClassNames.end()};
  data.packed.bytes.resize(count * kShape.size());
  data.labels.reserve(count);
  std::vector<std::uint8_t> image(kShape.size());
  for (std::size_t sample = 0; sample < dimensions[0]; ++sample) {
    FEDGE_TRY_VOID(reader.read(image));
    const std::size_t at = data.labels.size();
    if (at == count || (wanted && (*wanted)[at] != sample)) continue;
    std::memcpy(data.packed.bytes.data() + at * kShape.size(), image.data(), image.size());
    data.labels.push_back(labels.values[sample]);
  }
  FEDGE_TRY_VOID(reader.finish());
  return data;
}

std::filesystem::path directory_of(const DataSpec& spec) {
  return spec.directory.empty() ? kDebianDirectory : spec.directory;
}

Result<Dataset> read_split(const DataSpec& spec, const std::string& prefix) {
  FEDGE_TRY(labels, read_labels(directory_of(spec), prefix + "-labels-idx1-ubyte"));
  return read_images(directory_of(spec), prefix + "-images-idx3-ubyte", labels, std::nullopt);
}

class FashionMnist final : public DataSource {
 public:
  Result<DatasetInfo> describe(const DataSpec&) const override {
    return DatasetInfo{kShape, kClasses, kClasses, {kClassNames.begin(), kClassNames.end()}};
  }
  Result<Dataset> load(const DataSpec& spec, Split split) const override {
    return read_split(spec, split == Split::kTrain ? "train" : "t10k");
  }
  Result<SampleLabels> labels(const DataSpec& spec) const override {
    FEDGE_TRY(labels, read_labels(directory_of(spec), kTrainLabels));
    return SampleLabels{std::move(labels.values), kClasses};
  }
  Result<Dataset> load_chosen(const DataSpec& spec, const ChooseSamples& choose) const override {
    FEDGE_TRY(labels, read_labels(directory_of(spec), kTrainLabels));
    FEDGE_TRY(samples, choose(labels.values, kClasses));
    return read_images(directory_of(spec), "train-images-idx3-ubyte", labels, samples);
  }
};

}  // namespace

std::shared_ptr<const DataSource> read_fashion_mnist(config::Reader&) {
  return std::make_shared<FashionMnist>();
}

}  // namespace fedge::learn
