#include "learn/arrays/array_source.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "learn/arrays/array_file.h"
#include "learn/data/files/data_files.h"
#include "learn/data/files/split.h"

namespace fedge::learn {
namespace {

constexpr std::size_t kPiece = 16'384;  // elements that are converted at once
constexpr const char* kArrayCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";
constexpr double kShownMost = 9e18;  // of a label, in messages
const std::vector<std::string> kLayoutNames = {"channels-last", "channels-first"};

// "(60000, 28, 28)"
std::string shown_shape(std::span<const std::size_t> shape) {
  std::string text;
  for (const std::size_t size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "(" + text + ")";
}

std::vector<std::size_t> without_ones(std::vector<std::size_t> shape) {
  std::erase(shape, std::size_t{1});
  return shape;
}

// The position of an element in an array, for messages: "[3, 0, 5]".
std::string shown_position(std::size_t element, std::span<const std::size_t> shape) {
  std::string text;
  for (std::size_t i = shape.size(); i-- > 0; element /= shape[i])
    text = std::to_string(element % shape[i]) + (text.empty() ? "" : ", ") + text;
  return "[" + text + "]";
}

// Converts the elements of arrays to samples.
class ArrayLoader {
 public:
  explicit ArrayLoader(const ArraySchema& schema) : schema_(schema) {}

  // The same file twice if it is an archive.
  Result<void> read(const std::filesystem::path& inputs, const std::filesystem::path& targets) {
    FEDGE_TRY(labels, ArrayStream::open(targets, schema_.targets));
    FEDGE_TRY(values, ArrayStream::open(inputs, schema_.inputs));
    FEDGE_TRY(count, samples_in(values));
    const auto& shape = labels.header().shape;
    if (shape.empty() || labels.header().elements != shape[0] || !is_integer(labels.header().type))
      return invalid(labels.name() + " has the shape " + shown_shape(shape) + " and the type " +
                     name_of(labels.header().type) + ", expected one integer for each sample");
    if (shape[0] != count)
      return invalid(values.name() + " has " + std::to_string(count) + " samples, but " + labels.name() +
                     " has " + std::to_string(shape[0]) + " labels");
    if (count > (kMaxValues - features_.size()) / schema_.shape.size())
      return invalid(values.name() + ": the samples have more than " + std::to_string(kMaxValues) +
                     " features together, which is not supported");
    FEDGE_TRY_VOID(read_labels(labels));
    return read_inputs(values);
  }

  Dataset take() && {
    Dataset data{.shape = schema_.shape,
                 .classes = schema_.classes,
                 .floats = AlignedBuffer<float>(features_.size()),
                 .labels = std::move(labels_)};
    std::ranges::copy(features_, data.floats.data());
    data.class_names = schema_.class_names;
    data.columns = schema_.columns();
    return data;
  }

 private:
  Result<std::size_t> samples_in(const ArrayStream& values) const {
    const InputShape& one = schema_.shape;
    const std::vector<std::size_t> sample = schema_.channels_first
                                                ? std::vector{one.channels, one.height, one.width}
                                                : std::vector{one.height, one.width, one.channels};
    const auto& shape = values.header().shape;
    if (shape.empty() || without_ones({shape.begin() + 1, shape.end()}) != without_ones(sample))
      return invalid(values.name() + " has the shape " + shown_shape(shape) +
                     ", but a sample of the run has the shape " + shown_shape(without_ones(sample)) +
                     " (data.shape, data.layout)");
    return shape[0];
  }

  // Calls use(value, number of the element) for each element; it returns what is wrong with the value, or
  // null.
  template <class Use>
  Result<void> for_each(ArrayStream& stream, Use&& use) {
    const NpyHeader& header = stream.header();
    std::array<double, kPiece> values;
    std::vector<std::byte> bytes(kPiece * bytes_of(header.type));
    for (std::size_t first = 0; first < header.elements; first += kPiece) {
      const std::size_t count = std::min(kPiece, header.elements - first);
      const auto piece = std::span(bytes).first(count * bytes_of(header.type));
      FEDGE_TRY_VOID(stream.read(piece));
      to_doubles(header.type, piece, std::span(values).first(count));
      for (std::size_t i = 0; i < count; ++i)
        if (const std::string wrong = use(values[i], first + i); !wrong.empty())
          return invalid(stream.name() + ": the value at " + shown_position(first + i, header.shape) + " " +
                         wrong);
    }
    return stream.finish();
  }

  Result<void> read_labels(ArrayStream& stream) {
    labels_.reserve(labels_.size() + stream.header().elements);
    const auto classes = static_cast<double>(schema_.classes);
    return for_each(stream, [&](double value, std::size_t) -> std::string {
      if (!(value >= 0.0 && value < classes))
        return "is " + std::to_string(static_cast<std::int64_t>(std::clamp(value, -kShownMost, kShownMost))) +
               ", expected a label from 0 to " + std::to_string(schema_.classes - 1);
      labels_.push_back(static_cast<Label>(value));
      return "";
    });
  }

  Result<void> read_inputs(ArrayStream& stream) {
    const std::size_t start = features_.size();
    features_.resize(start + stream.header().elements);
    const std::size_t channels = schema_.shape.channels;
    const std::size_t pixels = schema_.shape.height * schema_.shape.width;
    const auto of_channel = [](const std::vector<double>& values, std::size_t channel, double fallback) {
      return values.empty() ? fallback : values[values.size() == 1 ? 0 : channel];
    };
    return for_each(stream, [&](double value, std::size_t element) -> std::string {
      std::size_t channel = element % channels;
      std::size_t place = element;
      if (schema_.channels_first) {
        const std::size_t sample = element / schema_.shape.size();
        const std::size_t inside = element % schema_.shape.size();
        channel = inside / pixels;
        place = sample * schema_.shape.size() + inside % pixels * channels + channel;
      }
      const auto feature = static_cast<float>((value - of_channel(schema_.mean, channel, 0.0)) /
                                              of_channel(schema_.deviation, channel, 1.0));
      if (!std::isfinite(feature)) return std::isfinite(value) ? "is too large" : "is not a finite number";
      features_[start + place] = feature;
      return "";
    });
  }

  const ArraySchema& schema_;
  std::vector<float> features_;
  std::vector<Label> labels_;
};

// The IDX file of the labels that belongs to one of inputs: "train-labels-idx1-ubyte.gz" to
// "train-images-idx3-ubyte.gz"; empty for a file of labels.
Result<std::filesystem::path> idx_file_of_targets(const ArraySchema& schema,
                                                  const std::filesystem::path& file) {
  const std::string name = file.filename().string();
  const std::size_t at = name.find(schema.inputs);
  if (at == std::string::npos) {
    if (name.find(schema.targets) != std::string::npos) return std::filesystem::path();
    return invalid(file.string() + ": its name must contain " + schema.inputs + " or " + schema.targets +
                   " (data.inputs, data.targets)");
  }
  FEDGE_TRY(others, entries_of(file.has_parent_path() ? file.parent_path() : "."));
  std::erase_if(others, [&](const std::filesystem::path& other) {
    const std::string theirs = other.filename().string();
    return !is_idx_name(theirs) || !theirs.starts_with(name.substr(0, at) + schema.targets);
  });
  if (others.size() == 1) return others.front();
  return invalid(file.string() + ": there " + (others.empty() ? "is no file" : "are several files") +
                 " of its labels, whose name begins with " + name.substr(0, at) + schema.targets);
}

// The file of the labels that belongs to a file of inputs; empty for a file of labels.
Result<std::filesystem::path> file_of_targets(const ArraySchema& schema, const std::filesystem::path& file) {
  if (is_idx_name(file.filename().string())) return idx_file_of_targets(schema, file);
  if (file.extension() != ".npy") return file;
  const std::string stem = file.stem().string();
  if (stem.ends_with(schema.inputs))
    return file.parent_path() /
           (stem.substr(0, stem.size() - schema.inputs.size()) + schema.targets + ".npy");
  if (stem.ends_with(schema.targets)) return std::filesystem::path();
  return invalid(file.string() + ": its name must end with " + schema.inputs + ".npy or " + schema.targets +
                 ".npy (data.inputs, data.targets)");
}

class ArraySource final : public DataSource {
 public:
  explicit ArraySource(ArraySchema schema) : schema_(std::move(schema)) {}

  Result<DatasetInfo> describe(const DataSpec& spec) const override {
    return DatasetInfo{schema_.shape, schema_.classes, schema_.classes, schema_.class_names,
                       schema_of(spec).columns()};
  }
  Result<Dataset> load(const DataSpec& spec, Split split) const override {
    static constexpr std::array<std::string_view, 7> kEndings = {
        ".npz", ".npy", ".safetensors", "-ubyte", "-ubyte.gz", ".idx", ".idx.gz"};
    const ArraySchema schema = schema_of(spec);
    return load_split(spec, split, kEndings, [&](std::span<const std::filesystem::path> files) {
      return read_arrays(schema, files);
    });
  }

 private:
  ArraySchema schema_of(const DataSpec& spec) const {
    ArraySchema schema = schema_;
    schema.raw = spec.federated_normalisation;
    return schema;
  }

  ArraySchema schema_;
};

InputShape read_shape(config::Reader& section) {
  const auto sizes = section.integers(
      "shape", std::nullopt, {1, 1'000'000},
      "Shape of a sample: [features], [height, width] or [height, width, channels]. Axes of length 1 may be "
      "missing in the file.");
  const auto at = [&](std::size_t i) { return static_cast<std::size_t>(sizes[i]); };
  InputShape shape{1, 1, 1};
  if (sizes.size() == 1) shape.width = at(0);
  if (sizes.size() == 2 || sizes.size() == 3) shape = {at(0), at(1), sizes.size() == 3 ? at(2) : 1};
  if (section.has("shape") && (sizes.empty() || sizes.size() > 3))
    section.fail("shape", "has " + std::to_string(sizes.size()) + " numbers, expected 1 to 3");
  else if (shape.height > kMaxFeatures || shape.width > kMaxFeatures / shape.height ||
           shape.channels > kMaxFeatures / (shape.height * shape.width))
    section.fail("shape", "a sample has more than " + std::to_string(kMaxFeatures) +
                              " features, which is not supported");
  return shape;
}

std::vector<double> read_channels(config::Reader& section, const char* key, const InputShape& shape,
                                  config::NumberBounds bounds, const char* doc) {
  std::vector<double> values = section.numbers(key, std::vector<double>{}, bounds, doc);
  if (values.size() > 1 && values.size() != shape.channels)
    section.fail(key,
                 "has " + std::to_string(values.size()) + " numbers, but a sample has " +
                     std::to_string(shape.channels) + " channels; give one for all or one for each",
                 {"data.shape"});
  return values;
}

void read_labels_of(config::Reader& section, ArraySchema& schema) {
  schema.class_names = section.texts("classes", std::vector<std::string>{},
                                     "Names of the classes, in the order of their labels: 0, 1, ...");
  const auto names = static_cast<std::int64_t>(schema.class_names.size());
  schema.classes = static_cast<std::size_t>(
      section.integer("class_count", names, {0, static_cast<std::int64_t>(kMaxClasses)},
                      "Number of classes. The default is the number of names in classes."));
  if (section.has("classes") && section.has("class_count") && schema.classes != schema.class_names.size())
    section.fail("class_count", "is " + std::to_string(schema.classes) + ", but data.classes has " +
                                    std::to_string(names) + " names; omit one of them");
  else if (schema.classes < 2)
    section.fail(section.has("classes") ? "classes" : "class_count",
                 "a data set has at least 2 classes; set data.classes or data.class_count");
}

}  // namespace

ArraySchema read_array_schema(config::Reader& section) {
  ArraySchema schema;
  schema.inputs = section.text("inputs", "x", "Name of the array of inputs, one row for each sample.");
  schema.targets = section.text("targets", "y", "Name of the array of labels: integers from 0.");
  // The names become parts of paths, which only the device's owner chooses.
  const auto is_name = [](const std::string& name) {
    return !name.empty() && name.find_first_not_of(kArrayCharacters) == std::string::npos;
  };
  for (const auto& [key, name] : {std::pair("inputs", schema.inputs), {"targets", schema.targets}})
    if (!is_name(name))
      section.fail(key, "an array's name has one or more letters, digits and characters of \"_-.\"");
  if (schema.inputs.ends_with(schema.targets) || schema.targets.ends_with(schema.inputs))
    section.fail("targets", "the names of both arrays must differ, and neither may end with the other",
                 {"data.inputs", "data.targets"});
  schema.shape = read_shape(section);
  schema.channels_first =
      section.choice("layout", kLayoutNames, 0,
                     "Order of a sample's axes in the file.\nchannels-last: height, width, "
                     "channels.\nchannels-first: channels, height, width, as PyTorch has them.") == 1;
  schema.mean = read_channels(section, "mean", schema.shape, {-1e30, 1e30},
                              "What is subtracted from each value: a number for each channel, or one for "
                              "all. Empty: nothing.");
  schema.deviation = read_channels(section, "deviation", schema.shape, {1e-30, 1e30},
                                   "By what the difference is divided: a number for each channel, or one "
                                   "for all. Empty: no division.");
  read_labels_of(section, schema);
  return schema;
}

FeatureColumns ArraySchema::columns() const {
  if (!raw) return {};
  const bool one_axis = shape.height == 1 && shape.channels == 1;
  FeatureColumns columns{.period = one_axis ? shape.width : shape.channels};
  for (std::size_t c = 0; c < columns.period; ++c) {
    columns.at.push_back(c);
    columns.names.push_back((one_axis ? "feature " : "channel ") + std::to_string(c));
  }
  return columns;
}

Result<Dataset> read_arrays(const ArraySchema& schema, std::span<const std::filesystem::path> files) {
  ArrayLoader loader(schema);
  for (const std::filesystem::path& file : files) {
    FEDGE_TRY(targets, file_of_targets(schema, file));
    if (!targets.empty()) FEDGE_TRY_VOID(loader.read(file, targets));
  }
  return std::move(loader).take();
}

std::shared_ptr<const DataSource> read_array_source(config::Reader& section) {
  return std::make_shared<ArraySource>(read_array_schema(section));
}

}  // namespace fedge::learn
