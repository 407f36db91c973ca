#include "learn/images/image_source.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include "core/platform/files.h"
#include "learn/data/files/data_files.h"
#include "learn/data/files/split.h"
#include "learn/data/targets/task_key.h"
#include "learn/data/validation.h"
#include "learn/images/image_file.h"

namespace fedge::learn {
namespace {

constexpr std::size_t kMaskValues = 256;  // of a pixel
constexpr std::array<std::string_view, 3> kImageEndings = {".png", ".jpg", ".jpeg"};

bool is_image_name(const std::filesystem::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return std::tolower(c); });
  return std::ranges::find(kImageEndings, ending) != kImageEndings.end();
}

bool is_folder(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

// Scales classes: a pixel gets that of the nearest one.
std::vector<std::uint8_t> nearest(const Image& mask, std::size_t height, std::size_t width) {
  std::vector<std::uint8_t> pixels;
  for (std::size_t y = 0; y < height; ++y)
    for (std::size_t x = 0; x < width; ++x)
      pixels.push_back(mask.pixels[(2 * y + 1) * mask.height / (2 * height) * mask.width +
                                   (2 * x + 1) * mask.width / (2 * width)]);
  return pixels;
}

// Whether the header of the file says that its pixels are grey, of 8 bits: they are read as they are.
bool is_grey_png(std::string_view file) {
  constexpr std::string_view kSignature = "\x89PNG\r\n\x1a\n";
  constexpr std::size_t kDepth = 24;  // after the signature, the chunk's length and name, width and height
  return file.size() > kDepth + 1 && file.starts_with(kSignature) && file[kDepth] == 8 &&
         file[kDepth + 1] == 0;
}

// Adds the classes of an image of this size, and returns the most frequent one.
Result<Label> add_mask(const ImageSchema& schema, const std::filesystem::path& file, const ImageSize& image,
                       Dataset& data) {
  const std::string name = file.string();
  FEDGE_TRY(text, read_file(file, kMaxImageBytes));
  const auto bytes = std::as_bytes(std::span(text));
  if (!is_grey_png(text))
    return invalid(name +
                   ": a mask must be a PNG file of grey pixels of 8 bits, without a palette or colours");
  FEDGE_TRY(size, image_size(bytes, name));
  if (size.height != image.height || size.width != image.width)
    return invalid(name + ": the mask has " + std::to_string(size.height) + " x " +
                   std::to_string(size.width) + " pixels (height x width), but its image has " +
                   std::to_string(image.height) + " x " + std::to_string(image.width));
  FEDGE_TRY(mask, decode_image(bytes, name, 1));
  std::vector<std::size_t> counts(schema.classes.size());
  for (std::size_t i = 0; i < mask.pixels.size(); ++i)
    if (mask.pixels[i] >= counts.size())
      return invalid(name + ": the pixel in row " + std::to_string(i / size.width) + ", column " +
                     std::to_string(i % size.width) + " is " + std::to_string(mask.pixels[i]) +
                     ", expected 0 to " + std::to_string(counts.size() - 1) + " for the " +
                     std::to_string(counts.size()) + " classes of data.classes");
  for (const std::uint8_t pixel : nearest(mask, schema.shape.height, schema.shape.width)) {
    data.targets.points.push_back(pixel);
    ++counts[pixel];
  }
  return static_cast<Label>(std::ranges::max_element(counts) - counts.begin());
}

// Adds one image to the data.
Result<void> add_image(const ImageSchema& schema, const LabelledFile& file, Dataset& data) {
  const std::string name = file.path.string();
  FEDGE_TRY(text, read_file(file.path, kMaxImageBytes));
  const auto bytes = std::as_bytes(std::span(text));
  const InputShape& shape = schema.shape;
  FEDGE_TRY(size, image_size(bytes, name));
  const bool fits = size.height == shape.height && size.width == shape.width;
  if (!fits && !schema.resize)
    return invalid(name + ": the image has " + std::to_string(size.height) + " x " +
                   std::to_string(size.width) + " pixels (height x width), but the run's have " +
                   std::to_string(shape.height) + " x " + std::to_string(shape.width) +
                   "; data.resize = true scales images");
  FEDGE_TRY(image, decode_image(bytes, name, shape.channels));
  if (!fits) image = resized(image, shape.height, shape.width);
  data.packed.bytes.insert(data.packed.bytes.end(), image.pixels.begin(), image.pixels.end());
  Label label = file.label;
  if (schema.masks) {
    FEDGE_TRY(most, add_mask(schema, file.mask, size, data));
    label = most;
  }
  data.labels.push_back(label);
  return {};
}

// The images of a directory "images", each with its mask.
Result<std::vector<LabelledFile>> masked_files(const std::filesystem::path& directory) {
  const std::filesystem::path masks = directory / "masks";
  for (const std::filesystem::path& place : {directory / "images", masks})
    if (!is_folder(place))
      return Error{ErrorCode::kNotFound, place.string() +
                                             " does not exist; segmentation needs a directory images and a "
                                             "directory masks with a file of the same name for each image"};
  FEDGE_TRY(images, entries_of(directory / "images"));
  std::vector<LabelledFile> files;
  for (std::filesystem::path& image : images) {
    if (!is_image_name(image)) continue;
    std::filesystem::path mask = masks / image.stem();
    mask += ".png";
    std::error_code ignored;
    if (!std::filesystem::exists(mask, ignored))
      return invalid(image.string() + ": there is no mask " + mask.string());
    files.push_back({std::move(image), 0, std::move(mask)});
  }
  if (!files.empty()) return files;
  return Error{ErrorCode::kNotFound, (directory / "images").string() + " has no file *.png, *.jpg or *.jpeg"};
}

// The directory of one split if it is divided by directories; empty if there is only the other: a device may
// only train, or only evaluate.
Result<std::filesystem::path> directory_of(const std::filesystem::path& path, Split split) {
  FEDGE_TRY(entries, entries_of(path));
  std::array<std::filesystem::path, 2> found;
  constexpr std::array kWords = {"train", "test"};
  for (const std::filesystem::path& entry : entries)
    for (std::size_t i = 0; i < found.size(); ++i)
      if (is_folder(entry) && entry.filename().string().starts_with(kWords.at(i))) found.at(i) = entry;
  if (found[0].empty() && found[1].empty())
    return Error{ErrorCode::kNotFound,
                 path.string() +
                     " has no directory whose name begins with \"train\" or \"test\", which "
                     "data.split.kind = \"file\" needs"};
  return split == Split::kTrain ? found[0] : found[1];
}

class ImageSource final : public DataSource {
 public:
  explicit ImageSource(ImageSchema schema) : schema_(std::move(schema)) {}

  Result<DatasetInfo> describe(const DataSpec&) const override {
    const TargetShape target = schema_.target();
    return DatasetInfo{schema_.shape,
                       target.outputs,
                       target.outputs,
                       schema_.classes,
                       colour_columns(schema_.shape.channels),
                       target.kind,
                       target.points};
  }
  // Reads only the images of the split.
  Result<Dataset> load(const DataSpec& spec, Split split) const override {
    FEDGE_TRY_VOID(check_place(spec));
    if (spec.split.kind == SplitKind::kTime)
      return invalid("data.split.kind: images have no order of time; use \"share\" or \"file\"");
    if (spec.split.kind == SplitKind::kFile) {
      FEDGE_TRY(directory, directory_of(spec.directory, split));
      if (directory.empty()) return read_images(schema_, {});
      FEDGE_TRY(files, image_files(schema_, directory));
      return read_images(schema_, files);
    }
    FEDGE_TRY(files, image_files(schema_, spec.directory));
    std::vector<Label> labels;
    for (const LabelledFile& file : files) labels.push_back(file.label);
    auto chosen = test_samples(spec.split, labels, schema_.classes.size());
    if (split == Split::kTrain) chosen = samples_without(chosen, files.size());
    std::vector<LabelledFile> some;
    for (const std::uint32_t i : chosen) some.push_back(files[i]);
    return read_images(schema_, some);
  }

 private:
  ImageSchema schema_;
};

InputShape read_image_shape(config::Reader& section) {
  const auto sizes =
      section.integers("shape", std::nullopt, {1, 100'000},
                       "Shape of an image: [height, width, channels], with 1 channel for grey and 3 "
                       "for colours. Images are converted to the channels.");
  if (sizes.size() != 3 || (sizes[2] != 1 && sizes[2] != 3)) {
    if (section.has("shape"))
      section.fail("shape", "must have three numbers: height, width, and 1 or 3 channels");
    return {1, 1, 1};
  }
  const InputShape shape{static_cast<std::size_t>(sizes[0]), static_cast<std::size_t>(sizes[1]),
                         static_cast<std::size_t>(sizes[2])};
  if (shape.size() > kMaxFeatures)
    section.fail("shape", "a sample has more than " + std::to_string(kMaxFeatures) +
                              " features, which is not supported");
  return shape;
}

std::vector<float> read_per_channel(config::Reader& section, const char* key, std::size_t channels,
                                    config::NumberBounds bounds, const char* doc) {
  const std::vector<double> values = section.numbers(key, std::vector<double>{}, bounds, doc);
  if (values.size() > 1 && values.size() != channels)
    section.fail(key,
                 "has " + std::to_string(values.size()) + " numbers, but an image has " +
                     std::to_string(channels) + " channels; give one for all or one for each",
                 {"data.shape"});
  if (values.size() == 1) return std::vector<float>(channels, static_cast<float>(values[0]));
  return {values.begin(), values.end()};
}

}  // namespace

TargetShape ImageSchema::target() const {
  if (!masks) return {.outputs = classes.size()};
  return {TargetKind::kPoints, classes.size(), shape.height * shape.width};
}

FeatureColumns colour_columns(std::size_t channels) {
  FeatureColumns columns{.period = channels};
  for (std::size_t c = 0; c < channels; ++c) columns.at.push_back(c);
  columns.names =
      channels == 1 ? std::vector<std::string>{"grey"} : std::vector<std::string>{"red", "green", "blue"};
  return columns;
}

Normalisation read_colour_normalisation(config::Reader& section, std::size_t channels) {
  Normalisation by;
  by.mean =
      read_per_channel(section, "mean", channels, {-1e6, 1e6},
                       "What is subtracted from each value, which is between 0 and 255: a number for each "
                       "channel, or one for all. Empty: 127.5.");
  by.deviation =
      read_per_channel(section, "deviation", channels, {1e-6, 1e6},
                       "By what the difference is divided: a number for each channel, or one for all. "
                       "Empty: 127.5.");
  if (by.mean.empty()) by.mean.assign(channels, 127.5F);
  if (by.deviation.empty()) by.deviation.assign(channels, 127.5F);
  return by;
}

ImageSchema read_image_schema(config::Reader& section) {
  ImageSchema schema;
  schema.shape = read_image_shape(section);
  schema.resize =
      section.boolean("resize", false,
                      "Whether images of other sizes are scaled to the shape, without keeping their "
                      "proportions. Otherwise they are refused.");
  schema.by = read_colour_normalisation(section, schema.shape.channels);
  const TargetKind task = read_task_kind(section);
  schema.masks = task == TargetKind::kPoints;
  if (task == TargetKind::kLabels || task == TargetKind::kValues)
    section.fail("task",
                 "images have a class, or masks with a class for each pixel: use \"classification\" or "
                 "\"segmentation\"");
  schema.classes =
      section.texts("classes", std::nullopt,
                    "Names of the classes, in the order of their labels: 0, 1, ... They are the names of "
                    "their directories, or in segmentation the values of the masks' pixels.");
  const std::set<std::string> distinct(schema.classes.begin(), schema.classes.end());
  if (distinct.size() != schema.classes.size()) section.fail("classes", "contains a name twice");
  if (section.has("classes") && (schema.classes.size() < 2 || schema.classes.size() > kMaxClasses))
    section.fail("classes", "has " + std::to_string(schema.classes.size()) + " classes, expected 2 to " +
                                std::to_string(kMaxClasses));
  if (const std::size_t points = schema.shape.height * schema.shape.width;
      schema.masks && points > kMaxPoints)
    section.fail("shape",
                 "an image has " + std::to_string(points) + " pixels; in segmentation at most " +
                     std::to_string(kMaxPoints) + " are supported",
                 {"data.task"});
  if (schema.masks && schema.classes.size() > kMaskValues)
    section.fail("classes",
                 "has " + std::to_string(schema.classes.size()) + " classes; a mask has at most " +
                     std::to_string(kMaskValues) + " values",
                 {"data.task"});
  return schema;
}

Result<std::vector<LabelledFile>> image_files(const ImageSchema& schema,
                                              const std::filesystem::path& directory) {
  if (schema.masks) return masked_files(directory);
  FEDGE_TRY(entries, entries_of(directory));
  std::vector<LabelledFile> files;
  std::vector<std::filesystem::path> places(schema.classes.size());
  for (const std::filesystem::path& entry : entries) {
    if (!is_folder(entry)) continue;
    const auto found = std::ranges::find(schema.classes, entry.filename().string());
    if (found == schema.classes.end())
      return invalid(entry.string() + ": the directory's name is not one of data.classes");
    places[static_cast<std::size_t>(found - schema.classes.begin())] = entry;
  }
  for (std::size_t k = 0; k < places.size(); ++k) {
    if (places[k].empty()) continue;
    FEDGE_TRY(images, entries_of(places[k]));
    for (std::filesystem::path& image : images)
      if (is_image_name(image)) files.push_back({std::move(image), static_cast<Label>(k)});
  }
  if (!files.empty()) return files;
  return Error{
      ErrorCode::kNotFound,
      directory.string() + " has no directory, named like a class, with a file *.png, *.jpg or *.jpeg"};
}

Result<Dataset> read_images(const ImageSchema& schema, std::span<const LabelledFile> files) {
  Dataset data{.shape = schema.shape, .classes = schema.classes.size(), .floats = {}, .labels = {}};
  data.class_names = schema.classes;
  data.columns = colour_columns(schema.shape.channels);
  data.normalisation = schema.by;
  if (schema.masks) data.targets.shape = schema.target();
  std::iota(data.packed.value.begin(), data.packed.value.end(), 0.0F);
  if (!files.empty() && files.size() > kMaxValues / schema.shape.size())
    return invalid(files.front().path.string() + " and the other images have more than " +
                   std::to_string(kMaxValues) + " features together, which is not supported");
  data.packed.bytes.reserve(files.size() * schema.shape.size());
  for (const LabelledFile& file : files) FEDGE_TRY_VOID(add_image(schema, file, data));
  return data;
}

std::shared_ptr<const DataSource> read_image_source(config::Reader& section) {
  return std::make_shared<ImageSource>(read_image_schema(section));
}

}  // namespace fedge::learn
