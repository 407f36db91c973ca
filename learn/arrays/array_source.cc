#include "learn/arrays/array_source.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "core/text.h"
#include "learn/arrays/array_file.h"
#include "learn/data/files/data_files.h"
#include "learn/data/files/split.h"
#include "learn/evaluation/sums.h"

namespace fedge::learn {
namespace {

constexpr std::size_t kPiece = 16'384;  // elements that are converted at once
constexpr double kShownMost = 9e18;     // of a label, in messages
constexpr double kLeastDeviation = 1e-6;

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
    const TargetShape target = schema_.target();
    const std::size_t each = target.has_values() ? target.outputs : target.points;
    if (shape.empty() || labels.header().elements != shape[0] * each ||
        (!is_integer(labels.header().type) && !target.has_values()))
      return invalid(labels.name() + " has the shape " + shown_shape(shape) + " and the type " +
                     name_of(labels.header().type) + ", expected " + expected(each) + " for each sample");
    if (shape[0] != count)
      return invalid(values.name() + " has " + std::to_string(count) + " samples, but " + labels.name() +
                     " has " + std::to_string(shape[0]) + (target.has_values() ? " targets" : " labels"));
    if (count > (kMaxValues - features_.size()) / schema_.input().size())
      return invalid(values.name() + ": the samples have more than " + std::to_string(kMaxValues) +
                     " features together, which is not supported");
    FEDGE_TRY_VOID(target.has_values() ? read_values(labels) : read_labels(labels));
    const std::size_t first = features_.size();
    FEDGE_TRY_VOID(read_inputs(values));
    if (schema_.standardise) standardise(first);
    return {};
  }

  Dataset take() && {
    Dataset data{.shape = schema_.input(),
                 .classes = schema_.target().groups(),
                 .floats = AlignedBuffer<float>(features_.size()),
                 .labels = std::move(labels_)};
    std::ranges::copy(features_, data.floats.data());
    data.class_names = schema_.class_names;
    data.columns = schema_.columns();
    if (schema_.task == TargetKind::kClass) return data;
    data.targets = {.shape = schema_.target(),
                    .points = std::move(points_),
                    .values = std::move(values_),
                    .scale = schema_.target_scale()};
    return data;
  }

 private:
  // Describes what a sample has in the array of targets.
  std::string expected(std::size_t count) const {
    const std::string what = schema_.task == TargetKind::kLabels   ? "label"
                             : schema_.task == TargetKind::kValues ? "number"
                                                                   : "integer";
    return count == 1 ? "one " + what : std::to_string(count) + " " + what + "s";
  }

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
    const bool of_points = schema_.task == TargetKind::kPoints;
    std::vector<Label>& to = of_points ? points_ : labels_;
    to.reserve(to.size() + stream.header().elements);
    const auto classes = static_cast<double>(schema_.classes);
    FEDGE_TRY_VOID(for_each(stream, [&](double value, std::size_t) -> std::string {
      if (!(value >= 0.0 && value < classes))
        return "is " + std::to_string(static_cast<std::int64_t>(std::clamp(value, -kShownMost, kShownMost))) +
               ", expected a label from 0 to " + std::to_string(schema_.classes - 1);
      to.push_back(static_cast<Label>(value));
      return "";
    }));
    std::vector<std::size_t> counts(of_points ? schema_.classes : 0);
    while (of_points && labels_.size() < points_.size() / schema_.points) {
      std::ranges::fill(counts, 0);
      for (const Label label : std::span(points_).subspan(labels_.size() * schema_.points, schema_.points))
        ++counts[label];
      labels_.push_back(static_cast<Label>(std::ranges::max_element(counts) - counts.begin()));
    }
    return {};
  }

  Result<void> read_values(ArrayStream& stream) {
    const std::size_t outputs = schema_.target().outputs;
    const auto of = [](const std::vector<double>& values, std::size_t k, double fallback) {
      return values.empty() ? fallback : values[values.size() == 1 ? 0 : k];
    };
    FEDGE_TRY_VOID(for_each(stream, [&](double number, std::size_t element) -> std::string {
      if (schema_.task == TargetKind::kLabels && number != 0 && number != 1)
        return "is not a label, expected 0 or 1";
      const double value = (number - of(schema_.target_mean, element % outputs, 0)) /
                           of(schema_.target_deviation, element % outputs, 1);
      if (!std::isfinite(static_cast<float>(value)))
        return std::isfinite(number) ? "is too large" : "is not a finite number";
      if (!schema_.raw && std::abs(value) > EvaluationSums::kMostValue)
        return "is more than " + number_text(EvaluationSums::kMostValue) +
               " deviations from the mean; the run must set data.target_mean and data.target_deviation, or "
               "data.normalise = \"federated\"";
      values_.push_back(static_cast<float>(value));
      return "";
    }));
    labels_.resize(values_.size() / outputs, 0);
    return {};
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

  // Standardises the samples whose features begin at `first`.
  void standardise(std::size_t first) {
    const std::vector<float> read(features_.begin() + static_cast<std::ptrdiff_t>(first), features_.end());
    const std::size_t steps = schema_.shape.height;
    const std::size_t numbers = schema_.shape.width;
    const std::size_t samples = read.size() / schema_.shape.size();
    features_.resize(first + samples * schema_.input().size());
    float* to = features_.data() + first;
    for (std::size_t s = 0; s < samples; ++s) {
      const float* from = read.data() + s * schema_.shape.size();
      double deviations = 0;
      for (std::size_t c = 0; c < numbers; ++c)
        deviations += standardise_number(from + c, steps, numbers, to + c);
      const auto strength =
          static_cast<float>(std::log10(kLeastDeviation + deviations / static_cast<double>(numbers)));
      for (std::size_t i = 0; i < steps; ++i) to[i * (numbers + 1) + numbers] = strength;
      to += schema_.input().size();
    }
  }

  // Standardises one number of all steps, and returns its deviation.
  static double standardise_number(const float* from, std::size_t steps, std::size_t numbers, float* to) {
    double sum = 0;
    double squares = 0;
    for (std::size_t i = 0; i < steps; ++i) sum += static_cast<double>(from[i * numbers]);
    const double mean = sum / static_cast<double>(steps);
    for (std::size_t i = 0; i < steps; ++i) {
      const double off = static_cast<double>(from[i * numbers]) - mean;
      squares += off * off;
    }
    const double deviation = std::sqrt(squares / static_cast<double>(steps));
    for (std::size_t i = 0; i < steps; ++i)
      to[i * (numbers + 1)] = static_cast<float>((static_cast<double>(from[i * numbers]) - mean) /
                                                 std::max(deviation, kLeastDeviation));
    return deviation;
  }

  const ArraySchema& schema_;
  std::vector<float> features_;
  std::vector<Label> labels_;
  std::vector<Label> points_;
  std::vector<float> values_;
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
    const TargetShape target = schema_.target();
    return DatasetInfo{schema_.input(),           target.groups(), target.outputs, schema_.class_names,
                       schema_of(spec).columns(), target.kind,     target.points,  schema_.target_scale()};
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

}  // namespace

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
