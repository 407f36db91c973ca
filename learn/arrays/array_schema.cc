#include "learn/arrays/array_schema.h"

#include "learn/data/files/data_files.h"
#include "learn/data/targets/task_key.h"

namespace fedge::learn {
namespace {

constexpr const char* kArrayCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";
const std::vector<std::string> kLayoutNames = {"channels-last", "channels-first"};

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

// One number, or `count` of them. `beside` is the key that says how many there are.
std::vector<double> read_each(config::Reader& section, const char* key, std::size_t count, const char* what,
                              const char* beside, config::NumberBounds bounds, const char* doc) {
  std::vector<double> values = section.numbers(key, std::vector<double>{}, bounds, doc);
  if (values.size() > 1 && values.size() != count)
    section.fail(key,
                 "has " + std::to_string(values.size()) + " numbers, but a sample has " +
                     std::to_string(count) + " " + what + "; give one for all or one for each",
                 {beside});
  return values;
}

void read_labels_of(config::Reader& section, ArraySchema& schema) {
  schema.class_names =
      section.texts("classes", std::vector<std::string>{},
                    "Names of the classes or labels, in the order of their numbers: 0, 1, ...");
  const auto names = static_cast<std::int64_t>(schema.class_names.size());
  schema.classes = static_cast<std::size_t>(
      section.integer("class_count", names, {0, static_cast<std::int64_t>(kMaxClasses)},
                      "Number of classes or labels. The default is the number of names in classes."));
  if (schema.task == TargetKind::kValues) return;
  const bool labels = schema.task == TargetKind::kLabels;
  if (section.has("classes") && section.has("class_count") && schema.classes != schema.class_names.size())
    section.fail("class_count", "is " + std::to_string(schema.classes) + ", but data.classes has " +
                                    std::to_string(names) + " names; omit one of them");
  else if (schema.classes < (labels ? 1 : 2))
    section.fail(section.has("classes") ? "classes" : "class_count",
                 std::string("a data set has at least ") + (labels ? "1 label" : "2 classes") +
                     "; set data.classes or data.class_count");
}

void read_targets_of(config::Reader& section, ArraySchema& schema) {
  schema.task = read_task_kind(section);
  const bool values = schema.task == TargetKind::kValues;
  require_task(section, "points", schema.task, schema.task == TargetKind::kPoints, "segmentation");
  schema.points = static_cast<std::size_t>(section.integer(
      "points", 1, {1, static_cast<std::int64_t>(kMaxPoints)},
      "segmentation: number of points of a sample, each with a class in the array of targets."));
  require_task(section, "point_seconds", schema.task, schema.task == TargetKind::kPoints, "segmentation");
  schema.point_seconds = section.number(
      "point_seconds", 0.0, {0.0, 1e6},
      "segmentation: time from a point to the next, in which errors of the boundaries of events "
      "are reported, in seconds. 0: they are reported in points.");
  for (const char* key : {"value_count", "target_mean", "target_deviation"})
    require_task(section, key, schema.task, values, "regression");
  schema.values = static_cast<std::size_t>(
      section.integer("value_count", 1, {1, static_cast<std::int64_t>(kMaxClasses)},
                      "regression: number of values of a sample in the array of targets."));
  schema.target_mean =
      read_each(section, "target_mean", schema.values, "values", "data.value_count", {-1e30, 1e30},
                "regression: what is subtracted from each value. Empty: nothing.");
  schema.target_deviation =
      read_each(section, "target_deviation", schema.values, "values", "data.value_count", {1e-30, 1e30},
                "regression: by what the difference is divided. Errors are reported in units of the values. "
                "Empty: no division.");
  for (const char* key : {"classes", "class_count"})
    require_task(section, key, schema.task, !values, "classification, segmentation and multi-label");
  read_labels_of(section, schema);
}

}  // namespace

ArraySchema read_array_schema(config::Reader& section) {
  ArraySchema schema;
  schema.inputs = section.text("inputs", "x", "Name of the array of inputs, one row for each sample.");
  schema.targets =
      section.text("targets", "y",
                   "Name of the array of targets: integers from 0 for classes, 1 and 0 for labels "
                   "that are set or not, numbers for values.");
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
  schema.mean = read_each(section, "mean", schema.shape.channels, "channels", "data.shape", {-1e30, 1e30},
                          "What is subtracted from each value: a number for each channel, or one for "
                          "all. Empty: nothing.");
  schema.deviation =
      read_each(section, "deviation", schema.shape.channels, "channels", "data.shape", {1e-30, 1e30},
                "By what the difference is divided: a number for each channel, or one "
                "for all. Empty: no division.");
  schema.standardise = section.boolean(
      "standardise", false,
      "Whether each number of the steps of a sample [steps, numbers] gets mean 0 and deviation 1 over the "
      "sample. Every step then has one more number, the logarithm (base 10) of the mean of these deviations, "
      "so that a sample's strength stays known.");
  if (schema.standardise && (schema.shape.height == 1 || schema.shape.channels != 1))
    section.fail("standardise", "needs samples of the shape [steps, numbers]", {"data.shape"});
  read_targets_of(section, schema);
  return schema;
}

TargetShape ArraySchema::target() const {
  return {task, task == TargetKind::kValues ? values : classes, points};
}

std::vector<float> ArraySchema::target_scale() const {
  if (task == TargetKind::kPoints && point_seconds > 0) return {static_cast<float>(point_seconds)};
  if (target_deviation.size() != 1) return {target_deviation.begin(), target_deviation.end()};
  return std::vector<float>(values, static_cast<float>(target_deviation.front()));
}

FeatureColumns ArraySchema::columns() const {
  if (!raw) return {};
  const bool one_axis = shape.height == 1 && shape.channels == 1;
  FeatureColumns columns{.period = one_axis ? shape.width : shape.channels};
  for (std::size_t c = 0; c < columns.period; ++c) {
    columns.at.push_back(c);
    columns.names.push_back((one_axis ? "feature " : "channel ") + std::to_string(c));
  }
  for (std::size_t k = 0; task == TargetKind::kValues && k < values; ++k)
    columns.targets.push_back(targets + (values > 1 ? " " + std::to_string(k) : ""));
  return columns;
}

}  // namespace fedge::learn
