#include "learn/data/dataset.h"

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <vector>

#include "core/check.h"
#include "core/platform/files.h"
#include "learn/data/idx.h"
#include "learn/data/validation.h"
#include "learn/text/corpus.h"
#include "learn/text/text_data.h"

namespace fedge::learn {
namespace {

constexpr const char* kDebianDirectory = "/usr/share/datasets/fashion-mnist";
constexpr const char* kDebianPackage = "dataset-fashion-mnist";
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
  std::vector<std::uint8_t> values;
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
  return Labels{std::move(file.path), std::move(labels)};
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

Result<std::shared_ptr<const Dataset>> shared(Result<Dataset> data) {
  if (!data) return data.error();
  return std::make_shared<const Dataset>(std::move(*data));
}

std::filesystem::path directory_of(const DataSpec& spec) {
  return spec.directory.empty() ? kDebianDirectory : spec.directory;
}

Result<Dataset> read_split(const DataSpec& spec, const std::string& prefix) {
  FEDGE_TRY(labels, read_labels(directory_of(spec), prefix + "-labels-idx1-ubyte"));
  return read_images(directory_of(spec), prefix + "-images-idx3-ubyte", labels, std::nullopt);
}

}  // namespace

void Dataset::read_inputs(std::size_t first, std::span<float> out) const {
  const std::size_t begin = first * shape.size();
  if (packed.bytes.empty()) {
    std::memcpy(out.data(), floats.data() + begin, out.size_bytes());
    return;
  }
  const std::uint8_t* bytes = packed.bytes.data() + begin;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = packed.value[bytes[i]];
}

Result<DatasetInfo> describe(const DataSpec& spec) {
  if (is_text(spec)) {
    FEDGE_TRY(tokenizer, make_tokenizer(spec.tokenizer));
    return DatasetInfo{{1, spec.context, 1, true}, 0, tokenizer.vocabulary(), {}};
  }
  if (spec.dataset == "fashion-mnist")
    return DatasetInfo{kShape, kClasses, kClasses, {kClassNames.begin(), kClassNames.end()}};
  std::string known;
  for (const std::string& name : dataset_names()) known += (known.empty() ? "" : ", ") + name;
  return Error{ErrorCode::kNotFound,
               "data.dataset: \"" + spec.dataset + "\" is not a known data set, expected one of " + known};
}

std::vector<std::string> class_names(const DataSpec& spec) {
  if (!is_text(spec)) {
    auto info = describe(spec);
    return info ? std::move(info->class_names) : std::vector<std::string>();
  }
  std::vector<std::string> names;
  if (auto groups = load_corpus(spec.dataset, spec.directory))
    for (TextGroup& group : *groups) names.push_back(std::move(group.name));
  return names;
}

Result<std::shared_ptr<const Dataset>> load_train(const DataSpec& spec) {
  if (const auto known = describe(spec); !known) return known.error();
  if (is_text(spec)) return shared(load_text(spec, TextSplit::kTrain));
  FEDGE_TRY(data, read_split(spec, "train"));
  AlignedBuffer<float> floats(data.packed.bytes.size());
  data.read_inputs(0, floats.span());
  data.floats = std::move(floats);
  data.packed = {};
  return std::make_shared<const Dataset>(std::move(data));
}

Result<std::shared_ptr<const Dataset>> load_test(const DataSpec& spec) {
  if (const auto known = describe(spec); !known) return known.error();
  if (is_text(spec)) return shared(load_text(spec, TextSplit::kHeldOut));
  FEDGE_TRY(data, read_split(spec, "t10k"));
  return std::make_shared<const Dataset>(std::move(data));
}

Result<std::shared_ptr<const Dataset>> load_evaluation(const DataSpec& spec, const Rng& rng) {
  if (spec.validation == 0) return load_test(spec);
  if (const auto known = describe(spec); !known) return known.error();
  if (is_text(spec)) {
    FEDGE_TRY(text, load_text(spec, TextSplit::kTrain));
    FEDGE_TRY(windows, validation_samples(spec, text.labels, text.classes, rng));
    return std::make_shared<const Dataset>(
        select_windows(text, spread_windows(text, windows, spec.test_windows)));
  }
  FEDGE_TRY(labels, read_labels(directory_of(spec), "train-labels-idx1-ubyte"));
  FEDGE_TRY(samples, validation_samples(spec, labels.values, kClasses, rng));
  return shared(read_images(directory_of(spec), "train-images-idx3-ubyte", labels, samples));
}

Result<std::vector<std::uint32_t>> partition_sizes(const DataSpec& spec, const Rng& rng) {
  const auto shared_out = [&]() -> Result<Partition> {
    if (is_text(spec)) {
      FEDGE_TRY(data, load_text(spec, TextSplit::kTrain));
      return partition_for_clients(spec, data.labels, data.classes, rng);
    }
    FEDGE_TRY(labels, read_labels(directory_of(spec), "train-labels-idx1-ubyte"));
    return partition_for_clients(spec, labels.values, kClasses, rng);
  };
  FEDGE_TRY(parts, shared_out());
  std::vector<std::uint32_t> sizes(parts.clients());
  for (std::size_t client = 0; client < sizes.size(); ++client)
    sizes[client] = static_cast<std::uint32_t>(parts.of(client).size());
  return sizes;
}

Result<std::shared_ptr<const Dataset>> load_part(const DataSpec& spec, std::size_t client, const Rng& rng) {
  if (const auto known = describe(spec); !known) return known.error();
  FEDGE_CHECK(client < spec.partition.clients, "the partition has fewer clients");
  if (is_text(spec)) {
    FEDGE_TRY(text, load_text(spec, TextSplit::kTrain));
    FEDGE_TRY(groups, partition_for_clients(spec, text.labels, text.classes, rng));
    return std::make_shared<const Dataset>(select_windows(text, groups.of(client)));
  }
  FEDGE_TRY(labels, read_labels(directory_of(spec), "train-labels-idx1-ubyte"));
  FEDGE_TRY(parts, partition_for_clients(spec, labels.values, kClasses, rng));
  FEDGE_TRY(data, read_images(directory_of(spec), "train-images-idx3-ubyte", labels, parts.of(client)));
  return std::make_shared<const Dataset>(std::move(data));
}

}  // namespace fedge::learn
