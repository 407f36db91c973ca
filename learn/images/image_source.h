// Images as a data set: a directory with a directory of PNG and JPEG files for each class, named like the
// class. In segmentation, a directory "images" of them and a directory "masks" with a grey PNG file of the
// same name for each, whose pixels are the classes 0, 1, ... The path is the device's choice
// (DataSpec::directory). With data.split.kind = "file", these directories are in directories whose names
// begin with "train" and "test".
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/config/reader.h"
#include "core/result.h"
#include "learn/data/dataset.h"

namespace fedge::learn {

struct ImageSchema {
  InputShape shape;                  // 1 or 3 channels
  bool resize = false;               // images of other sizes are scaled; otherwise they are refused
  Normalisation by;                  // one number for each channel, or empty
  std::vector<std::string> classes;  // names of the directories, unless there are masks
  bool masks = false;                // segmentation: each pixel has a class

  TargetShape target() const;
};

// The channels of images, 1 or 3.
FeatureColumns colour_columns(std::size_t channels);
// Reads their mean and deviation from [data].
Normalisation read_colour_normalisation(config::Reader& section, std::size_t channels);

// Reads the options of [data] for images.
ImageSchema read_image_schema(config::Reader& section);

struct LabelledFile {
  std::filesystem::path path;
  Label label = 0;
  std::filesystem::path mask{};  // empty: none
};
// The images in the directories of the classes, by class and then by name; `directory` may have other files
// beside them. With masks, those in the directory "images", by name. kInvalid names a directory that is no
// class, or an image without a mask; kNotFound if there is no image.
Result<std::vector<LabelledFile>> image_files(const ImageSchema& schema,
                                              const std::filesystem::path& directory);

// Reads these images, in their order. The label of an image with a mask is its most frequent class. Errors
// name the file: those of decode_image(), and kInvalid for an image of another size, a mask that is not as
// large as its image, and a pixel that is no class.
Result<Dataset> read_images(const ImageSchema& schema, std::span<const LabelledFile> files);

// The data set "images" (learn/data/kinds.h).
std::shared_ptr<const DataSource> read_image_source(config::Reader& section);

}  // namespace fedge::learn
